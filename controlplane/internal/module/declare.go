package module

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Change is what became of a declare or undeclare.
type Change struct {
	// Changed is false when all was so already.
	Changed bool `json:"changed"`
	// Version is the module's.
	Version uint64 `json:"version,omitempty"`
	// Nodes are the ids of those that have a new declaration.
	Nodes []string `json:"nodes"`
}

// Declare makes or changes the module name. A nil placement keeps that of a
// module that is there, and places a new one nowhere. has says whether a blob
// is in the content store.
func Declare(tx *state.Tx, now time.Time, name string, doc []byte, placement []string, has func(digest.Digest) bool) (Change, error) {
	if err := validName(name); err != nil {
		return Change{}, err
	}
	d, err := declaration.Parse(doc)
	if err != nil {
		return Change{}, err
	}
	old, err := tx.Module(name)
	if err != nil {
		return Change{}, err
	}
	m := &state.Module{Name: name, Version: 1, Digest: digest.FromBytes(doc).String(), Placement: placement, Changed: now}
	var before []string
	if old != nil {
		m.Version, before = old.Version, old.Placement
		if placement == nil {
			m.Placement = old.Placement
		}
		if old.Digest == m.Digest && slices.Equal(old.Placement, m.Placement) {
			return Change{Version: old.Version, Nodes: []string{}}, nil
		}
		if old.Digest != m.Digest {
			m.Version++
		}
	}
	if err := check(tx, name, d, m.Placement, has); err != nil {
		return Change{}, err
	}
	if err := tx.PutModule(m, doc); err != nil {
		return Change{}, err
	}
	nodes, err := reassign(tx, now, func(n *state.Node) bool { return present(before, n) || present(m.Placement, n) },
		func(n *state.Node, err error) error {
			if !involves(err, name) {
				return nil // was in conflict before, for other reasons
			}
			return fault.Refusedf("cannot declare module %q: on node %q: %w", name, n.Name, err).
				Hint("take the thing out of one of the modules, or place them apart")
		})
	if err != nil {
		return Change{}, err
	}
	where := "nowhere"
	if len(m.Placement) > 0 {
		where = "on " + strings.Join(m.Placement, ", ")
	}
	err = tx.AddEvent(&state.Event{At: now, Kind: "module.declared",
		Sentence: fmt.Sprintf("module %q version %d is declared %s; %d nodes get a new declaration", name, m.Version, where, len(nodes))})
	return Change{Changed: true, Version: m.Version, Nodes: nodes}, err
}

func check(tx *state.Tx, name string, d *declaration.Declaration, placement []string, has func(digest.Digest) bool) error {
	var missing []string
	for _, src := range d.Sources() {
		if !has(src) {
			missing = append(missing, fmt.Sprintf("%q", src))
		}
	}
	if len(missing) > 0 {
		return fault.Refusedf("cannot declare module %q: content %s is not in the content store", name, strings.Join(missing, ", ")).
			Hint("declare the text itself as \"content\", or bring the content first")
	}
	// Also a module that is placed nowhere must be one that can be composed.
	if _, _, err := Compose("x", 1, []Part{{name, d}}); err != nil {
		return err
	}
	secret := slices.ContainsFunc(d.Resources, func(r declaration.Resource) bool { return r.File != nil && r.File.Secret })
	return checkPlacement(tx, placement, secret)
}

// Undeclare removes the module name. What it declared is gone from the
// declarations of its nodes, and the hosts remove it.
func Undeclare(tx *state.Tx, now time.Time, name string) (Change, error) {
	m, err := tx.Module(name)
	if err != nil {
		return Change{}, err
	}
	if m == nil {
		return Change{}, fault.Refusedf("cannot undeclare %q: there is no such module", name).
			Hint("run `mesh-controller status` for their names")
	}
	if err := tx.DeleteModule(name); err != nil {
		return Change{}, err
	}
	nodes, err := reassign(tx, now, func(n *state.Node) bool { return present(m.Placement, n) },
		func(*state.Node, error) error { return nil }) // less cannot bring a conflict about
	if err != nil {
		return Change{}, err
	}
	err = tx.AddEvent(&state.Event{At: now, Kind: "module.undeclared",
		Sentence: fmt.Sprintf("module %q is undeclared; %d nodes get a new declaration", name, len(nodes))})
	return Change{Changed: true, Nodes: nodes}, err
}

// reassign composes anew for the admitted nodes that affected picks, and
// returns those that changed. failed decides about a composition that is not
// possible: nil lets the node keep what it has.
func reassign(tx *state.Tx, now time.Time, affected func(*state.Node) bool, failed func(*state.Node, error) error) ([]string, error) {
	s, err := load(tx)
	if err != nil {
		return nil, err
	}
	nodes, err := tx.Nodes()
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, n := range nodes {
		if n.State != state.Admitted && n.State != state.Enrolled || !affected(n) {
			continue
		}
		changed, err := s.assign(n)
		if err != nil {
			if err := failed(n, err); err != nil {
				return nil, err
			}
		}
		if err := tx.PutNode(n); err != nil {
			return nil, err
		}
		if changed {
			ids = append(ids, n.ID)
		}
	}
	return ids, nil
}
