// Package process is the kind "process": a program that is kept running, or
// run once to completion, by a shim of its own (host/internal/supervise).
//
// The kind writes what shall run into the process's folder (definition.json)
// and sees to it that a shim runs that; the shim does the rest. Nothing here
// is the parent of anything, so a host that is restarted, upgraded or killed
// leaves every process alone and finds it again: by the lock its shim holds,
// never by a PID.
//
// What is as declared: the definition on disk has the wanted bytes, and a shim
// lives that runs a definition of that digest (a process that runs once: it has
// run to completion). A host killed between writing the definition and the
// restart is therefore seen by the next Check. Both are known of the living
// shim and from no file (supervise.Shim), so a full or broken disk, or a file
// that somebody emptied, never costs a process its life: Apply mends the files
// it can mend, and stops nothing that runs what is wanted.
//
// A process that is as declared and keeps failing is not drift. Check says
// Same, and Failing with the shim's own words; Apply is not called for it, so
// the timer of the host never starts a back-off anew, and one that was halted
// stays down until its definition changes, or something it names in
// restart_on, or a person asks: both come as Want.Restart. Apply waits until the process has lived for a moment
// (supervise.Definition, Settle) or has failed for the first time, so that the
// Check after it tells the truth. For one that runs once it waits for the end,
// as long as its context allows: what is declared after it can count on it.
// One that was still running then goes on, and the next pass waits again.
//
// A process that may be rolled back has its executable judged by the shim, which
// keeps a copy of one that worked and puts it back in place of one that failed. That
// is no drift either: the process runs, and Check notes by which. The file it
// executes asks the kind what failed here (Failed), so that the bad one is not laid
// down again, and whether what is there is our own work (Restored).
//
// What survives a crash: everything but the wait. Who keeps the shim up
// through a reboot is the Supervisor's matter.
package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// answerTime bounds how long a shim may take to say how its process does,
// Settle included.
const answerTime = 15 * time.Second

// Config is what the kind works with.
type Config struct {
	Layout layout.Layout
	// Supervisor keeps the shims up; Choose picks it.
	Supervisor Supervisor
}

// found is resource.State.Found: whose what is there is. What is our own, of a
// host that was killed or lost its store, is not given back.
type found struct {
	Own  bool  `json:"own,omitempty"`
	Unit *Unit `json:"unit,omitempty"`
}

// A Kind applies process resources.
type Kind struct {
	layout layout.Layout
	sup    Supervisor
	// adjust lets a test shorten the times of a definition.
	adjust func(*supervise.Definition)

	mu sync.Mutex
	// restored is what shims of removed processes had put back, by what
	// supervise.Rollback calls the program.
	restored map[string]string
}

var _ resource.Kind = (*Kind)(nil)

// New makes the kind.
func New(c Config) *Kind { return &Kind{layout: c.Layout, sup: c.Supervisor} }

func (k *Kind) dir(name string) string { return filepath.Join(k.layout.Processes(), name) }

// Check implements resource.Kind.
func (k *Kind) Check(_ context.Context, want resource.Want, _ *resource.Record) (resource.State, error) {
	name := want.Resource.Process.Name
	def, err := k.definition(want.Resource.Process)
	if err != nil {
		return resource.State{}, err
	}
	place, err := k.sup.Look(name)
	if err != nil {
		return resource.State{}, fmt.Errorf("cannot check process %q: %w", name, err)
	}
	v, err := k.look(name, def)
	if err != nil {
		return resource.State{}, fmt.Errorf("cannot check process %q: %w", name, err)
	}
	st := resource.State{
		Exists:      place.Exists || v.exists,
		Foreign:     place.Foreign != nil,
		Differences: append(place.Differences, v.differences()...),
	}
	if st.Exists {
		if st.Found, err = json.Marshal(found{Own: place.Foreign == nil, Unit: place.Foreign}); err != nil {
			return st, err
		}
	}
	st.Same = len(st.Differences) == 0 && !st.Foreign
	if st.Same {
		if st.Failing = v.failing(); st.Failing == "" {
			st.Note = v.note()
		}
	}
	return st, nil
}

// Apply implements resource.Kind.
func (k *Kind) Apply(ctx context.Context, want resource.Want, _ *resource.Record, found resource.State) error {
	name := want.Resource.Process.Name
	if err := k.apply(ctx, want, found.Foreign); err != nil {
		return fmt.Errorf("cannot start process %q: %w", name, err)
	}
	return nil
}

func (k *Kind) apply(ctx context.Context, want resource.Want, foreign bool) error {
	name := want.Resource.Process.Name
	def, err := k.definition(want.Resource.Process)
	if err != nil {
		return err
	}
	if foreign {
		if !want.Resource.TakeOver {
			return fault.Failedf("%q exists and is not ours", unitName(name)).Hint(`remove it, or declare "take_over": true`)
		}
		if err := k.sup.Stop(ctx, name); err != nil {
			return err
		}
	}
	dir := k.dir(name)
	if err := supervise.Sweep(dir); err != nil {
		return err
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	v, err := k.look(name, def)
	if err != nil {
		return err
	}
	if !v.written {
		if err := durable.WriteFile(filepath.Join(dir, supervise.DefinitionFile), def.bytes, 0o600); err != nil {
			return err
		}
	}
	if err := k.sup.Ensure(ctx, name); err != nil {
		return err
	}
	if !want.Restart && (v.runs() || v.completed()) {
		if err := k.await(ctx, def, dir, true); !errors.Is(err, errEnded) {
			return err
		}
	}
	if err := k.stop(ctx, name); err != nil {
		return err
	}
	if want.Restart {
		// That it was halted or ran to completion is forgotten, also when the
		// shim was killed before it could say that it was told to stop.
		if err := supervise.Reset(dir); err != nil {
			return err
		}
	}
	if err := k.sup.Start(ctx, name); err != nil {
		return err
	}
	return k.await(ctx, def, dir, false)
}

// errEnded is the error when the shim that was up ended by itself.
var errEnded = errors.New("its shim ended")

// await waits until the shim has something to say about its process. A shim
// that lives and cannot say it, on a full disk, is no error: Check tells. up
// says that there is one, and no other on its way.
func (k *Kind) await(ctx context.Context, def definition, dir string, up bool) error {
	limited := ctx
	if !def.Once {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, answerTime)
		defer cancel()
	}
	var v view
	err := watch(limited, dir, func() (done bool, err error) {
		v, err = k.look(filepath.Base(dir), def)
		if err == nil && up && !v.shim && !v.completed() {
			err = errEnded
		}
		return v.settled(), err
	})
	switch {
	case err == nil:
		return nil
	case v.shim && def.Once:
		return fmt.Errorf("it runs once and has not ended yet: %w", err)
	case v.runs() && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	return fmt.Errorf("its shim does not say how it does: %w", err)
}

// stop ends the process, whoever keeps its shim up, and all it left.
func (k *Kind) stop(ctx context.Context, name string) error {
	if err := k.sup.Stop(ctx, name); err != nil {
		return err
	}
	// A shim that its supervisor does not know of, or one that was killed.
	if err := endShim(ctx, k.dir(name)); err != nil {
		return err
	}
	return supervise.EndLeftover(k.dir(name))
}

// Remove implements resource.Kind.
func (k *Kind) Remove(ctx context.Context, record resource.Record) (declaration.Outcome, string, error) {
	name, ok := strings.CutPrefix(record.Key, string(declaration.TypeProcess)+":")
	if !ok || !supervise.ValidName(name) {
		return "", "", fmt.Errorf("internal error: %q is no process", record.Key)
	}
	if err := k.remove(ctx, name, record.Before); err != nil {
		return "", "", fmt.Errorf("cannot remove process %q: %w", name, err)
	}
	return declaration.Removed, "", nil
}

func (k *Kind) remove(ctx context.Context, name string, before json.RawMessage) error {
	place, err := k.sup.Look(name)
	if err != nil {
		return err
	}
	ours := place.Foreign == nil
	for {
		if ours {
			err = k.stop(ctx, name)
		} else {
			// The unit that is there was given back before, or came since; a
			// shim over our folder is ours whatever keeps it up.
			err = endShim(ctx, k.dir(name))
		}
		if err == nil {
			k.remember(name)
			err = supervise.Discard(k.dir(name))
		}
		// One that was on its way as the others were stopped.
		if !errors.Is(err, supervise.ErrHeld) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if ours {
		if err := k.sup.Forget(ctx, name); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	var was found
	if err := json.Unmarshal(before, &was); err != nil {
		return fmt.Errorf("cannot read what was there before: %w", err)
	}
	if was.Unit == nil {
		return nil
	}
	if now := place.Foreign; now != nil && !bytes.Equal(now.Content, was.Unit.Content) {
		return nil // somebody's who came since
	}
	return k.sup.Restore(ctx, name, *was.Unit)
}

// written reports whether the file at path holds exactly want.
func written(path string, want []byte) (bool, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	got := make([]byte, len(want)+1)
	n, err := readFull(f, got)
	return err == nil && bytes.Equal(got[:n], want), err
}
