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
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Admit decides on a bundle before anything of it is written: may its name be a
// module's, and is it not older than what is recorded of that name for that
// architecture? A release for one architecture may come later than for another,
// so each has its own count.
func Admit(tx *state.Tx, p *state.Pushed, allowRollback bool) error {
	if !name.Valid(p.Name) {
		return fault.Refusedf("the name of bundle %q can be no module's: a name is %s", p.Name, name.Rule)
	}
	old, err := tx.Pushed(p.Name, p.Architecture)
	if err != nil {
		return err
	}
	if old != nil && p.Counter < old.Counter && !allowRollback {
		return fault.Refusedf("older than what was pushed: bundle %q for %s has counter %d, %d was pushed", p.Name, p.Architecture, p.Counter, old.Counter).
			Hint("push a newer one, or say --allow-rollback")
	}
	return nil
}

// Push records a bundle, all of whose content is in the content store, as a module.
// It takes the place of the one of its name and architecture. A nil placement keeps
// that of the name, and places a new one nowhere. What is returned is not Changed when
// all was so already. has says whether a blob is in the content store.
func Push(tx *state.Tx, now time.Time, p state.Pushed, document []byte, on []string, allowRollback bool, has func(digest.Digest) bool) (*state.Pushed, Change, error) {
	if err := Admit(tx, &p, allowRollback); err != nil {
		return nil, Change{}, err
	}
	d, err := declaration.Parse(document)
	if err != nil {
		return nil, Change{}, fmt.Errorf("its declaration is of no use: %w", err)
	}
	if _, err := compose([]part{{module: p.Name, document: d}}); err != nil {
		return nil, Change{}, err
	}
	for _, s := range d.Sources() {
		if !has(s) {
			return nil, Change{}, fault.Refusedf("its declaration names %s, which it does not bring", s)
		}
		p.Sources = append(p.Sources, s.String())
	}
	p.Declaration, p.At = digest.FromBytes(document).String(), now
	c, err := place(tx, now, &p, d, document, on)
	return &p, c, err
}

// place writes a bundle where it is to be present, and composes for the nodes that this
// changes something for.
func place(tx *state.Tx, now time.Time, p *state.Pushed, d *declaration.Declaration, document []byte, on []string) (Change, error) {
	all, err := tx.PushedOf(p.Name)
	if err != nil {
		return Change{}, err
	}
	var old *state.Pushed
	var was []string
	for _, o := range all {
		was = o.Placement // the same for each
		if o.Architecture == p.Architecture {
			old = o
		}
	}
	declared, err := tx.Module(p.Name)
	if err != nil {
		return Change{}, err
	}
	if p.Placement = on; on == nil {
		p.Placement = was
	}
	if declared != nil && len(p.Placement) > 0 || declared != nil && on == nil && declared.From != "" {
		if err := makeRoom(tx, p, declared, on); err != nil {
			return Change{}, err
		}
		was = append(slices.Clone(was), declared.Placement...)
	}
	before, err := parsePlacement(was)
	if err != nil {
		return Change{}, err
	}
	after, err := parsePlacement(p.Placement)
	if err != nil {
		return Change{}, err
	}
	nodes, err := within(tx, before, after)
	if err != nil {
		return Change{}, err
	}
	c := Change{Nodes: []string{}, Placement: p.Placement}
	same := old != nil && old.Bundle == p.Bundle && slices.Equal(old.Signers, p.Signers) &&
		slices.Equal(old.Placement, p.Placement) && tx.ModuleDocument(p.Key()) != nil
	for _, n := range nodes {
		if (&placed{placement: after, architecture: p.Architecture}).holds(n) {
			c.Present++
		}
	}
	if same {
		p.At = old.At
		return c, nil
	}
	holds := secret(d)
	for _, o := range all { // the placement is theirs, too
		if o.Architecture == p.Architecture || tx.ModuleDocument(o.Key()) == nil {
			continue
		}
		other, err := declaration.Parse(tx.ModuleDocument(o.Key()))
		if err != nil {
			return Change{}, fault.Failedf("cannot read module %q: %w", o.Name, err)
		}
		holds = holds || secret(other)
	}
	if err := after.check(tx, p.Placement, holds); err != nil {
		return Change{}, err
	}
	for _, o := range all { // one placement for a name
		if o.Architecture == p.Architecture {
			continue
		}
		o.Placement = p.Placement
		if err := tx.PutPushed(o, tx.ModuleDocument(o.Key())); err != nil {
			return Change{}, err
		}
	}
	if err := tx.PutPushed(p, document); err != nil {
		return Change{}, err
	}
	s, err := load(tx, now)
	if err != nil {
		return Change{}, err
	}
	affected := slices.DeleteFunc(nodes, func(n *state.Node) bool { return !before.holds(n) && !after.holds(n) })
	c.Nodes, err = s.reassign(affected, func(n *state.Node, err error) error {
		if !involves(err, p.Name) {
			return nil
		}
		return fault.Refusedf("on node %q: %w", n.Name, err).Hint("take the thing out of one of the modules, or place them apart")
	})
	if err != nil {
		return Change{}, err
	}
	c.Changed = true
	where := "is placed nowhere yet"
	if len(p.Placement) > 0 {
		where = "is placed on " + strings.Join(p.Placement, ", ") + "; " + newDeclarations(c.Nodes)
	}
	return c, tx.AddEvent(&state.Event{At: now, Kind: "module.pushed",
		Sentence: fmt.Sprintf("bundle %q %s (counter %d, %s) is pushed, signed by %s; it %s",
			p.Name, p.Version, p.Counter, p.Architecture, strings.Join(p.Signers, ", "), where)})
}

// makeRoom takes away the module that a machine brought along under the bundle's name,
// when a person says where the bundle is to be: it is what that machine's own bundle was
// taken over as. A module that a person declared is not a bundle's to replace.
func makeRoom(tx *state.Tx, p *state.Pushed, declared *state.Module, on []string) error {
	if declared.From == "" {
		return fault.Refusedf("a person declared module %q, and the bundle would take its place", p.Name).
			Hint("run `mesh-controller undeclare %s` first, or push it without --on", p.Name)
	}
	if on == nil {
		p.Placement = nil // as one that is new: whose name it is is that machine's word
		return nil
	}
	return tx.DeleteModule(p.Name)
}

// forget removes what was pushed of a name, and returns where it was placed and whether
// there was any.
func forget(tx *state.Tx, now time.Time, module string) (was []string, any bool, err error) {
	ps, err := tx.PushedOf(module)
	if err != nil {
		return nil, false, err
	}
	for _, p := range ps {
		was = p.Placement
		if err := tx.DeletePushed(p); err != nil {
			return nil, false, err
		}
		err := tx.AddEvent(&state.Event{At: now, Kind: "module.undeclared",
			Sentence: fmt.Sprintf("bundle %q %s (%s) is forgotten", p.Name, p.Version, p.Architecture)})
		if err != nil {
			return nil, false, err
		}
	}
	return was, len(ps) > 0, nil
}
