package unit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// jobTime is less than the engine's patience, so that it is told what systemd
// says.
const jobTime = 100 * time.Second

// run starts, stops or changes over what runs. changed says that it runs as its
// files were before, asked that it shall be started anew, and failing that
// nothing less will do.
func (k *Kind) run(ctx context.Context, u *declaration.Unit, changed, asked, failing bool) error {
	if template(u.Name) {
		return nil
	}
	s, err := k.systemd.look(ctx, u.Name)
	if err != nil {
		return fmt.Errorf("cannot look at unit %q: %w", u.Name, err)
	}
	v := change(u, s, changed, asked, failing)
	if v == "" {
		return k.clearPending(u.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, k.jobTime)
	defer cancel()
	if v != stop {
		if err := k.startable(ctx, u, s); err != nil {
			return fmt.Errorf("cannot %s unit %q: %w", v, u.Name, err)
		}
	}
	if err := k.job(ctx, v, u.Name); err != nil {
		return err
	}
	return k.clearPending(u.Name)
}

// change is the job that makes the unit what is declared, or "".
func change(u *declaration.Unit, s status, changed, asked, failing bool) verb {
	switch {
	case isnt(u.Active):
		if s.runs() || s.Active == "deactivating" {
			return stop
		}
		return ""
	case !s.runs():
		if is(u.Active) {
			return start
		}
		return ""
	case asked && failing:
		return restart
	case is(u.Active) && s.Active == "activating" && !s.again() && !asked && !changed:
		return start // which is under way: to hear how it ends
	case asked || changed:
		switch {
		case u.OnChange == declaration.OnChangeReload:
			return reload
		case asked || u.OnChange == declaration.OnChangeRestart:
			return restart
		}
	}
	return ""
}

// startable says why it would be no use to start it, and forgets that it failed.
func (k *Kind) startable(ctx context.Context, u *declaration.Unit, s status) error {
	if b := s.broken(); b != "" {
		return errors.New(b)
	}
	if s.Once && is(u.Active) {
		return fault.Failedf("it ends when its work is done (Type=oneshot), so it is never active").
			Hint("say RemainAfterExit=yes in the unit, or declare a timer that starts it")
	}
	if s.Active == "failed" {
		return k.systemd.resetFailed(ctx, u.Name)
	}
	return nil
}

// job runs a job to its end, and looks at what came of it: a job that is done
// has not always done anything.
func (k *Kind) job(ctx context.Context, v verb, name string) error {
	result, err := k.systemd.job(ctx, v, name)
	// What there is to say is asked when the time for the job may be over.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	s, serr := k.systemd.look(after, name)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("its job has not ended after %s: it is %s%s; systemd goes on with it", k.jobTime, s.Active, paren(s.Sub))
	case err != nil:
	case result != "done":
		err = fmt.Errorf("its job ended with %q%s: %s", result, paren(results[result]), s.ended())
	case serr != nil:
		err = serr
	case v != stop && len(s.Unmet) > 0 && !s.runs():
		err = fmt.Errorf("a condition of it is not met: %s", strings.Join(s.Unmet, ", "))
	case v != stop && s.Active == "failed":
		err = errors.New(s.ended())
	}
	if err != nil {
		return fmt.Errorf("cannot %s unit %q: %w", v, name, err)
	}
	return nil
}

// lastWords is how long systemd is asked for how a job ended.
const lastWords = 5 * time.Second

// results says what systemd means (org.freedesktop.systemd1(5), JobRemoved).
var results = map[string]string{
	"canceled":    "another job took its place",
	"timeout":     "it took longer than a job may",
	"dependency":  "a unit that it needs did not start",
	"skipped":     "it cannot do that as it is",
	"assert":      "an assertion of it is not met",
	"unsupported": "this machine has no units of that type",
}
