package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// A State is what a machine remembers of the releases it took: it only moves
// forward. It is a file of its own, so that losing the host's store loses no
// trust, and so that the installer reads the same as the host.
type State struct {
	// Root is the release root in force, as it was signed; empty when none was
	// ever recorded.
	Root []byte `json:"root,omitempty"`
	// Counters are the highest counters accepted, by bundle name.
	Counters map[string]uint64 `json:"counters,omitempty"`
}

// maxState bounds the file, in bytes.
const maxState = 1 << 20

// ReadState reads the file at path; one that is not there is a machine that
// took nothing yet. A damaged one is an error: to begin anew would forget what
// was revoked.
func ReadState(path string) (State, error) {
	var s State
	b, err := input.ReadFile(path, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("cannot read the trust state: %w", err)
	}
	err = canonical.Foreign(b, &s)
	if err == nil && len(s.Root) > 0 {
		_, err = FromRoot(s.Root)
	}
	if err != nil {
		return State{}, fault.Refusedf("cannot read the trust state %q: %w", path, err).
			Hint("put it back from a backup; removing it forgets which keys were revoked")
	}
	return s, nil
}

// moveRoot returns the state with the root in force moved to that of p; a policy
// without one moves nothing, and none moves it back.
func (s State) moveRoot(p *Policy) (State, error) {
	version, _ := p.Root()
	if version == 0 {
		return s, nil
	}
	if len(s.Root) > 0 {
		now, err := FromRoot(s.Root)
		if err != nil {
			return s, err
		}
		if v, _ := now.Root(); v > version {
			// Another process was further: what it recorded stays.
			return s, nil
		}
	}
	s.Root = p.RootBytes()
	return s, nil
}

// raise returns the state with each counter, by a bundle's name, at least as given.
func (s State) raise(counters map[string]uint64) State {
	raised := maps.Clone(s.Counters)
	if raised == nil {
		raised = map[string]uint64{}
	}
	for name, n := range counters {
		raised[name] = max(n, raised[name])
	}
	s.Counters = raised
	return s
}

// Record moves the state at path forward: the root to that of p, when p has
// one, and the counter of each name to at least what is given. Several
// processes may do so at once; each reads what is there under a lock (flock(2)
// on the folder), so nothing is lost and nothing moves back. What is there
// already is not written.
func Record(path string, p *Policy, counters map[string]uint64) error {
	folder, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("cannot write the trust state: %w", err)
	}
	defer folder.Close()
	if err := unix.Flock(folder.FD(), unix.LOCK_EX); err != nil {
		return fmt.Errorf("cannot write the trust state: %w", err)
	}
	s, err := ReadState(path)
	if err != nil {
		return err
	}
	if p != nil {
		if s, err = s.moveRoot(p); err != nil {
			return err
		}
	}
	s = s.raise(counters)
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if old, err := input.ReadFile(path, maxState); err == nil && string(old) == string(b) {
		return nil
	}
	if len(b) > maxState {
		// The next one to read it would refuse it.
		return fault.Refusedf("cannot write the trust state %q: it would have more than %d bytes, for bundles of %d names", path, maxState, len(s.Counters))
	}
	if err := durable.WriteFile(path, b, 0o600); err != nil {
		return fmt.Errorf("cannot write the trust state: %w", err)
	}
	return nil
}
