package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// ErrAlreadyEnrolled comes with the identity when the machine is a node of the
// token's mesh already; the token was not used. It is no fault.
var ErrAlreadyEnrolled = errors.New("already enrolled")

// ErrPending is wrapped when a person has not admitted the machine by the time
// the context ended. It is no fault: enrol again with the same token.
var ErrPending = errors.New("a person has to admit this machine")

// EnrolConfig is what Enrol needs.
type EnrolConfig struct {
	Token link.Token
	// Path is the identity file; its directory exists. One Enrol at a time.
	Path string
	// Facts is asked once, before the first address is tried.
	Facts func() (profile.Profile, profile.Inventory)
	// Declaration is the local declaration in force (valid JSON), or nil.
	Declaration []byte
	Clock       clock.Clock
	Log         *slog.Logger
	// Version is that of the running host.
	Version string

	// minBackoff is shorter in tests; step is told where a crash could be.
	minBackoff time.Duration
	step       func(string)
}

// The moments between which a crash can fall, in order.
const (
	stepKeyed     = "key and enrolment id are durable"
	stepGreeted   = "the control plane was greeted"
	stepAnswered  = "the control plane answered"
	stepCandidate = "the candidate is durable"
	stepAcked     = "the control plane knows we have it"
	stepActive    = "the identity is durable"
)

// Enrol makes this machine a node of the token's mesh and returns its
// identity, which is then at cfg.Path, active.
//
// It tries the token's addresses until one answers, waits where it is told to,
// and gives up when ctx ends (the last cause is in the error), when it is
// refused for good, or when no address is the mesh's. Called again after a
// crash at any moment, or after an error, it goes on where it was, with the
// same key and the same enrolment id: one machine becomes one node. An identity
// that was revoked is replaced by a new one.
func Enrol(ctx context.Context, cfg EnrolConfig) (*Identity, error) {
	e := &enrolment{EnrolConfig: cfg, wrong: map[string]error{}}
	if e.minBackoff == 0 {
		e.minBackoff = minBackoff
	}
	if e.step == nil {
		e.step = func(string) {}
	}
	if e.Log == nil {
		e.Log = slog.New(slog.DiscardHandler)
	}
	if e.Clock == nil {
		e.Clock = clock.System
	}
	if err := e.begin(); err != nil {
		return e.id, err
	}
	if err := e.run(ctx); err != nil {
		return nil, e.refused(err)
	}
	return e.id, nil
}

// refused leaves the machine as it was when this call began it and the control
// plane turned it down for good without ever having known of it: the key is
// nobody's then, as it is when the control plane will not have it any more. Else
// what is there is kept, for the call that goes on: one that was refused is known by
// this key, and comes back with it, another token or a person's approval.
func (e *enrolment) refused(err error) error {
	code := link.CodeOf(err)
	dead := code == link.NodeRevoked
	if !dead && (!e.fresh || e.perhapsKnown || code == link.Refused || !final(err)) {
		return err
	}
	if rerr := durable.Remove(e.Path); rerr != nil {
		return fmt.Errorf("%w (and %v)", err, rerr)
	}
	return err
}

type enrolment struct {
	EnrolConfig
	id   *Identity
	body []byte
	// wrong are the addresses where somebody else answered.
	wrong map[string]error
	// fresh: this call made the key; perhapsKnown: an answer to step 3 was not
	// heard, or was no refusal.
	fresh, perhapsKnown bool
	// redo: the acknowledgement was refused, so step 3 is repeated, once.
	redo, redone bool
}

// begin is step 0.
func (e *enrolment) begin() error {
	old, err := LoadIdentity(e.Path)
	switch {
	case err != nil:
		return err
	case old != nil && old.Stage == StageActive && old.Revoked != "":
		// That node is gone for good, and its key with it.
		e.Log.Warn("a revoked identity is given up", "mesh", old.Mesh, "node", old.Name)
		if e.id, err = newIdentity(e.Token); err != nil {
			return err
		}
	case old != nil && old.Stage == StageActive && old.Mesh == e.Token.Mesh:
		e.id = old
		return ErrAlreadyEnrolled
	case old != nil && old.Stage == StageActive:
		return fault.Refusedf("cannot enrol in mesh %q: this machine is node %q of mesh %q", e.Token.Mesh, old.Name, old.Mesh).
			Hint("a machine is in one mesh: revoke the node there and remove this identity.json first")
	case old != nil && old.Mesh == e.Token.Mesh:
		e.id = old
		if old.Stage == StageEnrolling {
			e.id.Pins, e.id.Addresses = e.Token.Pins, e.Token.Addresses
		}
	default:
		if old != nil {
			// It never came to its end: this machine was not that mesh's node.
			e.Log.Warn("an unfinished enrolment is given up", "mesh", old.Mesh)
		}
		e.fresh = old == nil
		if e.id, err = newIdentity(e.Token); err != nil {
			return err
		}
	}
	if err := e.id.Save(e.Path); err != nil {
		return err
	}
	e.step(stepKeyed)
	return nil
}

// request makes the body of step 3, once.
func (e *enrolment) request() error {
	if e.body != nil {
		return nil
	}
	csr, err := e.id.csr()
	if err != nil {
		return err
	}
	r := link.EnrolRequest{
		EnrolmentID: e.id.EnrolmentID, Protocol: link.ProtocolMax, CSR: csr, Declaration: e.Declaration,
	}
	r.Profile, r.Inventory = e.Facts()
	if e.body, err = json.Marshal(r); err != nil {
		return fmt.Errorf("cannot enrol: the local declaration is not JSON: %w", err)
	}
	if len(e.body) > link.MaxEnrolBody {
		return fault.Refusedf("cannot enrol: what this machine has to say is %d bytes long, at most %d may be", len(e.body), link.MaxEnrolBody)
	}
	return nil
}

// run goes round the addresses until the identity is active.
func (e *enrolment) run(ctx context.Context) error {
	if err := e.request(); err != nil {
		return err
	}
	b := backoff{min: e.minBackoff, max: maxBackoff}
	var last error
	for {
		err := e.round(ctx)
		if err == nil {
			return nil
		}
		if final(err) {
			return err
		}
		if ctx.Err() != nil {
			if last == nil {
				last = err
			}
			return e.gaveUp(last)
		}
		last = err
		wait := b.next()
		if asked, ok := link.ParseRetry(link.RetryOf(err)); ok {
			wait += asked
		}
		e.Log.Info("enrolment is tried again", "mesh", e.Token.Mesh, "cause", err, "wait", wait.Round(time.Millisecond))
		if sleep(ctx, wait) != nil {
			return e.gaveUp(err)
		}
	}
}

// final says whether trying again cannot help.
func final(err error) bool {
	if link.CodeOf(err) == link.NodeRevoked {
		return true // on a link it is asked again: there it may be taken back
	}
	if _, again := link.ParseRetry(link.RetryOf(err)); again {
		return false
	}
	var local *localError
	return link.CodeOf(err) != "" || errors.As(err, &local)
}

// localError is a failure of this machine, not of the way to the other.
type localError struct{ error }

func (e *localError) Unwrap() error { return e.error }

func (e *enrolment) gaveUp(last error) error {
	switch {
	case link.CodeOf(last) == link.Pending:
		return fmt.Errorf("cannot finish enrolling in mesh %q yet: %w", e.Token.Mesh, ErrPending)
	case errors.Is(last, context.Canceled) || errors.Is(last, context.DeadlineExceeded):
		return fault.Failedf("cannot enrol in mesh %q: no answer in time", e.Token.Mesh).
			Hint("run the command again; it goes on where it was")
	}
	return fault.Failedf("cannot enrol in mesh %q: %w", e.Token.Mesh, last)
}

// round tries each address once, and returns nil when one led to the end.
func (e *enrolment) round(ctx context.Context) error {
	var last error
	for _, a := range union(e.id.Addresses, e.Token.Addresses) {
		if e.wrong[a] != nil {
			continue
		}
		err := e.try(ctx, a)
		if err == nil {
			return nil
		}
		if link.CodeOf(err) == link.PinMismatch {
			e.Log.Warn("an address is dropped", "address", a, "cause", err)
			e.wrong[a] = err
			continue
		}
		last = fmt.Errorf("%s: %w", a, err)
		if final(err) || link.CodeOf(err) != "" || ctx.Err() != nil {
			// The control plane itself spoke; another address is the same one.
			return last
		}
	}
	if last == nil {
		return e.nobody()
	}
	return last
}

// nobody is the error when at every address somebody else answered.
func (e *enrolment) nobody() error {
	var each []string
	for _, a := range slices.Sorted(maps.Keys(e.wrong)) {
		each = append(each, fmt.Sprintf("%s: %v", a, e.wrong[a]))
	}
	return link.PinMismatch.Errorf("cannot enrol in mesh %q: no address is its control plane's: %s",
		e.Token.Mesh, strings.Join(each, "; "))
}

// try goes as far as it can with one address.
func (e *enrolment) try(ctx context.Context, address string) error {
	if e.id.Stage == StageEnrolling || e.redo {
		if err := e.ask(ctx, address); err != nil {
			return err
		}
		e.redo = false
	}
	err := acknowledge(ctx, e.id, address)
	if unknown(err) && !e.redone {
		// The candidate of an earlier run, and the control plane was restored
		// since.
		e.redo, e.redone = true, true
		if err := e.ask(ctx, address); err != nil {
			return err
		}
		e.redo = false
		err = acknowledge(ctx, e.id, address)
	}
	if err != nil {
		return err
	}
	e.step(stepAcked)
	e.id.Stage = StageActive
	if err := e.id.Save(e.Path); err != nil {
		return &localError{err}
	}
	e.step(stepActive)
	return nil
}
