package module

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// A Program is a program as a declaration speaks of it.
type Program struct {
	// Command says whether a path of the machine is the program's binary, State
	// whether it is its state directory.
	Command, State func(path string) bool
	// Machine is the machine id the program runs on, "" when it has none.
	Machine string
}

// A Runner is a node whose modules declare something a program needs.
type Runner struct {
	ID, Node string
	// Needs is what the program would not outlive, by what it is for it:
	// "process", "binary", "state".
	Needs map[string]Need
}

// Runs says whether the node runs the program, because its modules say so.
func (r Runner) Runs() bool { _, ok := r.Needs["process"]; return ok }

// A Need is one thing and the module that declares it.
type Need struct{ Key, Module string }

// Runners returns the nodes that have something of p, by id. One whose machine
// is known to be another than p's has not: the same paths mean another program
// there.
func Runners(tx *state.Tx, p Program) (map[string]Runner, error) {
	s, err := load(tx, time.Time{})
	if err != nil {
		return nil, err
	}
	nodes, err := members(tx)
	if err != nil {
		return nil, err
	}
	needs := map[string]map[string]Need{}
	for _, m := range s.modules {
		d, err := s.document(m.Name)
		if err != nil {
			return nil, err
		}
		for i := range d.Resources {
			if role := p.role(&d.Resources[i]); role != "" {
				if needs[m.Name] == nil {
					needs[m.Name] = map[string]Need{}
				}
				needs[m.Name][role] = Need{d.Resources[i].Key(), m.Name}
			}
		}
	}
	out := map[string]Runner{}
	for _, n := range nodes {
		if id := n.Profile.MachineID; id != "" && p.Machine != "" && id != p.Machine {
			continue
		}
		r := Runner{ID: n.ID, Node: n.Name, Needs: map[string]Need{}}
		for _, name := range s.on(n) {
			maps.Copy(r.Needs, needs[name])
		}
		if len(r.Needs) > 0 {
			out[n.ID] = r
		}
	}
	return out, nil
}

// role is what a resource is for the program, "" when it is nothing.
func (p Program) role(r *declaration.Resource) string {
	switch {
	case r.Process != nil && p.Command(r.Process.Command[0]):
		return "process"
	case r.File != nil && p.Command(r.File.Path):
		return "binary"
	case r.File != nil && p.State(r.File.Path):
		return "state"
	}
	return ""
}

// Without returns what of the needs after does not have any more, by key.
func (r Runner) Without(after map[string]Runner) []Need {
	var out []Need
	for role, need := range r.Needs {
		if _, ok := after[r.ID].Needs[role]; !ok {
			out = append(out, need)
		}
	}
	slices.SortFunc(out, func(a, b Need) int { return cmp.Compare(a.Key, b.Key) })
	return out
}
