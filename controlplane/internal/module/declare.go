package module

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/name"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Wish is a module as somebody wants it. A nil Placement keeps that of a
// module that is there, and places a new one nowhere.
type Wish struct {
	Name      string
	Document  []byte
	Placement []string
}

// A Change is what became of a declare or undeclare.
type Change struct {
	// Changed is false when all was so already.
	Changed bool `json:"changed"`
	// Version is the module's.
	Version uint64 `json:"version,omitempty"`
	// Nodes are the ids of those that have a new declaration.
	Nodes []string `json:"nodes"`
	// Placement is the module's, and Present on how many nodes it is.
	Placement []string `json:"placement,omitempty"`
	Present   int      `json:"present"`
	// Plan is what would be different on those nodes, when that was asked.
	Plan []Difference `json:"plan,omitzero"`
}

// Declare makes or changes a module. has says whether a blob is in the content
// store.
func Declare(tx *state.Tx, now time.Time, w Wish, has func(digest.Digest) bool) (Change, error) {
	return declare(tx, now, w, has, nil)
}

// Plan is Declare that also says what is different on each node. It costs more,
// and is for a transaction that is taken back (state.Store.Try).
func Plan(tx *state.Tx, now time.Time, w Wish, has func(digest.Digest) bool) (Change, error) {
	plan := []Difference{}
	c, err := declare(tx, now, w, has, func(n *state.Node, to *composition) error {
		d, err := difference(tx, n, to)
		plan = append(plan, d)
		return err
	})
	slices.SortFunc(plan, func(a, b Difference) int { return strings.Compare(a.Node, b.Node) })
	c.Plan = plan
	return c, err
}

func declare(tx *state.Tx, now time.Time, w Wish, has func(digest.Digest) bool, note func(*state.Node, *composition) error) (Change, error) {
	if !name.Valid(w.Name) {
		return Change{}, fault.Usagef("cannot declare module %q: a name is %s", w.Name, name.Rule)
	}
	d, err := declaration.Parse(w.Document)
	if err != nil {
		return Change{}, fmt.Errorf("cannot declare module %q: %w", w.Name, err)
	}
	old, err := tx.Module(w.Name)
	if err != nil {
		return Change{}, err
	}
	m := &state.Module{Name: w.Name, Version: 1, Digest: digest.FromBytes(w.Document).String(), Placement: w.Placement, Changed: now}
	var before placement
	if old != nil && old.From != "" && w.Placement == nil {
		return Change{}, brought(tx, old)
	}
	if err := notABundle(tx, w.Name); err != nil {
		return Change{}, err
	}
	if old != nil {
		if before, err = parsePlacement(old.Placement); err != nil {
			return Change{}, err
		}
		m.Version = old.Version
		if w.Placement == nil {
			m.Placement = old.Placement
		}
		if old.Digest != m.Digest {
			m.Version++
		}
	}
	after, err := parsePlacement(m.Placement)
	if err != nil {
		return Change{}, err
	}
	nodes, err := within(tx, before, after)
	if err != nil {
		return Change{}, err
	}
	c := Change{Version: m.Version, Nodes: []string{}, Placement: m.Placement}
	for _, n := range nodes {
		if after.holds(n) {
			c.Present++
		}
	}
	if old != nil && old.Digest == m.Digest && slices.Equal(old.Placement, m.Placement) && old.From == "" {
		return c, nil
	}
	if err := check(tx, w.Name, d, has); err != nil {
		return Change{}, err
	}
	if err := after.check(tx, m.Placement, secret(d)); err != nil {
		return Change{}, err
	}
	if err := tx.PutModule(m, w.Document); err != nil {
		return Change{}, err
	}
	s, err := load(tx, now)
	if err != nil {
		return Change{}, err
	}
	s.note = note
	affected := slices.DeleteFunc(nodes, func(n *state.Node) bool { return !before.holds(n) && !after.holds(n) })
	c.Nodes, err = s.reassign(affected, func(n *state.Node, err error) error {
		if !involves(err, w.Name) {
			return nil // was in conflict before, for other reasons
		}
		return fault.Refusedf("cannot declare module %q: on node %q: %w", w.Name, n.Name, err).
			Hint("take the thing out of one of the modules, or place them apart")
	})
	if err != nil {
		return Change{}, err
	}
	c.Changed = true
	where := "nowhere"
	if len(m.Placement) > 0 {
		where = "on " + strings.Join(m.Placement, ", ")
	}
	return c, tx.AddEvent(&state.Event{At: now, Kind: "module.declared",
		Sentence: fmt.Sprintf("module %q version %d is declared %s; %s", w.Name, m.Version, where, newDeclarations(c.Nodes))})
}

// notABundle refuses a name that a bundle is placed under.
func notABundle(tx *state.Tx, name string) error {
	ps, err := tx.PushedOf(name)
	for _, p := range ps {
		if len(p.Placement) > 0 {
			return fault.Refusedf("cannot declare module %q: bundle %q %s is placed under that name", name, p.Name, p.Version).
				Hint("push a newer bundle, declare under another name, or run `mesh-controller undeclare %s` first", name)
		}
	}
	return err
}

// brought refuses to put a person's words into the place that a machine chose
// by the name of its own declaration: what is declared next may be a secret.
func brought(tx *state.Tx, m *state.Module) error {
	n, err := tx.Node(m.From)
	if err != nil {
		return err
	}
	whose := m.From
	if n != nil {
		whose = n.Name
	}
	return fault.Refusedf("cannot declare module %q without --on: the machine of node %q brought a module of that name along, and it is there now", m.Name, whose).
		Hint("say where it shall be: --on node=%s to change what that node has, another --on to take it from there, or declare under another name", whose)
}

func newDeclarations(nodes []string) string {
	return cli.Count(len(nodes), "node gets", "nodes get") + " a new declaration"
}

// check refuses what could never be composed, also when it is placed nowhere.
func check(tx *state.Tx, module string, d *declaration.Declaration, has func(digest.Digest) bool) error {
	var missing []string
	for _, src := range d.Sources() {
		if !has(src) {
			missing = append(missing, fmt.Sprintf("%q", src))
		}
	}
	if len(missing) > 0 {
		return fault.Refusedf("cannot declare module %q: content %s is not in the content store", module, strings.Join(missing, ", ")).
			Hint("bring it with mesh-controller push, or declare the text itself as \"content\"")
	}
	if _, err := compose([]part{{module: module, document: d}}); err != nil {
		return fmt.Errorf("cannot declare module %q: %w", module, err)
	}
	return nil
}

func secret(d *declaration.Declaration) bool {
	return slices.ContainsFunc(d.Resources, func(r declaration.Resource) bool { return r.File != nil && r.File.Secret })
}

// Undeclare removes a module, and the bundles of its name that are not placed.
// What it declared is gone from the declarations of its nodes, and the hosts
// remove it.
func Undeclare(tx *state.Tx, now time.Time, module string) (Change, error) {
	m, err := tx.Module(module)
	if err != nil {
		return Change{}, err
	}
	was, pushed, err := forget(tx, now, module)
	if err != nil {
		return Change{}, err
	}
	if m == nil && !pushed {
		return Change{}, fault.Refusedf("cannot undeclare module %q: there is none of that name", module).
			Hint("run `mesh-controller status` for their names")
	}
	if m != nil {
		was = append(was, m.Placement...)
		if err := tx.DeleteModule(module); err != nil {
			return Change{}, err
		}
	}
	before, err := parsePlacement(was)
	if err != nil {
		return Change{}, err
	}
	nodes, err := within(tx, before)
	if err != nil {
		return Change{}, err
	}
	s, err := load(tx, now)
	if err != nil {
		return Change{}, err
	}
	nodes = slices.DeleteFunc(nodes, func(n *state.Node) bool { return !before.holds(n) })
	// Less cannot bring a conflict about.
	changed, err := s.reassign(nodes, func(*state.Node, error) error { return nil })
	if err != nil {
		return Change{}, err
	}
	return Change{Changed: true, Nodes: changed}, tx.AddEvent(&state.Event{At: now, Kind: "module.undeclared",
		Sentence: fmt.Sprintf("module %q is undeclared; %s", module, newDeclarations(changed))})
}

// members returns the nodes that have modules.
func members(tx *state.Tx) ([]*state.Node, error) {
	nodes, err := tx.Nodes()
	return slices.DeleteFunc(nodes, func(n *state.Node) bool { return !n.Member() }), err
}

// reassign composes anew for nodes, and returns the ids of those that changed.
// failed decides about a composition that is not possible: nil lets the node
// keep what it has.
func (s *set) reassign(nodes []*state.Node, failed func(*state.Node, error) error) ([]string, error) {
	ids := []string{}
	for _, n := range nodes {
		was, entitled := n.Conflict, n.Wanted.Sources
		changed, err := s.assign(n)
		if err != nil && n.Conflict != "" {
			err = failed(n, err)
		}
		if err != nil {
			return nil, err
		}
		if changed {
			ids = append(ids, n.ID)
		}
		if changed || n.Conflict != was || !slices.Equal(n.Wanted.Sources, entitled) {
			if err := s.tx.PutNode(n); err != nil {
				return nil, err
			}
		}
	}
	return ids, nil
}
