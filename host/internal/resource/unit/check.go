package unit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// slow is how long a unit may take to start before that is called a failure.
const slow = 2 * time.Minute

// Check implements resource.Kind.
func (k *Kind) Check(ctx context.Context, want resource.Want, prior *resource.Record) (resource.State, error) {
	st, err := k.check(ctx, want, prior)
	if err != nil {
		return resource.State{}, fmt.Errorf("cannot check unit %q: %w", want.Resource.Unit.Name, err)
	}
	return st, nil
}

func (k *Kind) check(ctx context.Context, want resource.Want, prior *resource.Record) (st resource.State, err error) {
	if err := k.supported(ctx); err != nil {
		return st, err
	}
	v, err := k.see(ctx, want.Resource.Unit, prior)
	if err != nil {
		return st, err
	}
	if err := v.held(); err != nil {
		return st, err
	}
	st.Differences = v.differences()
	st.Same, st.Exists, st.Foreign = len(st.Differences) == 0, v.exists(), v.foreign()
	if prior == nil {
		if st.Found, err = v.found(k); err != nil {
			return st, err
		}
	}
	if st.Same {
		st.Failing, st.Note = v.failing(clock.SinceBoot())
	}
	return st, nil
}

// held is an error of the type resource.Held for a unit that somebody masked and
// of which the declaration does not say whether it may be.
func (v *view) held() error {
	u := v.unit
	switch {
	case v.mask == "" || u.Masked != nil || !v.wantsMore():
		return nil
	case v.mask == u.Path() && v.was != nil && is(v.was.Masked):
		return nil // the host's own, of before
	case whole(u) && strings.HasPrefix(v.mask, "/run/systemd/system/"):
		return nil // a file in /etc comes before it
	}
	return resource.Held{Why: fmt.Sprintf(`it is masked: %q is a symlink to %s; "masked": false undoes that`, v.mask, null)}
}

// wantsMore: the declaration wants what no masked unit can do.
func (v *view) wantsMore() bool { return whole(v.unit) || is(v.unit.Enabled) || is(v.unit.Active) }

// failing says what is wrong with a unit that is as declared and yet does not do
// what it is for, or what else there is to know.
func (v *view) failing(now time.Duration) (failing, note string) {
	s := v.status
	if b := s.broken(); b != "" {
		return b, ""
	}
	switch {
	case !is(v.unit.Active):
		if v.mask != "" && !is(v.unit.Masked) {
			return "", "it is masked by " + v.mask
		}
	case s.again():
		return s.ended() + "; systemd starts it again and again", ""
	case s.Active == "activating" && now-time.Duration(s.Starting)*time.Microsecond > slow:
		return fmt.Sprintf("it has been starting%s since %s", paren(s.Sub), s.StartingSince.Format(time.RFC3339)), ""
	case s.Active == "activating":
		return "", "it is starting" + paren(s.Sub)
	}
	return "", ""
}
