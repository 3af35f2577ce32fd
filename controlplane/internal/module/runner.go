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
	// Needs is what the program would not outlive, by key: its process, its
	// binary, its state directory.
	Needs map[string]Need
}

// Runs says whether the node runs the program, because its modules say so.
func (r Runner) Runs() bool {
	for _, need := range r.Needs {
		if need.Command != nil {
			return true
		}
	}
	return false
}

// A Need is one thing, the module that declares it, and what a process executes:
// the same program with other arguments may be one that ends at once.
type Need struct {
	Key, Module string
	Command     []string
}

// Runners returns the nodes that have something of p, by id. One whose machine
// is known to be another than p's has not: the same paths mean another program
// there.
func Runners(tx *state.Tx, p Program) (map[string]Runner, error) {
	s, err := load(tx, time.Time{})
	if err != nil {
		return nil, err
	}
	needs := map[string]map[string]Need{}
	var where []placement
	for _, m := range s.modules {
		d, err := s.document(m.key)
		if err != nil {
			return nil, err
		}
		for i := range d.Resources {
			r := &d.Resources[i]
			if !p.needs(r) {
				continue
			}
			need := Need{Key: r.Key(), Module: m.Name}
			if r.Process != nil {
				need.Command = r.Process.Command
			}
			if needs[m.key] == nil {
				needs[m.key] = map[string]Need{}
				where = append(where, m.placement)
			}
			needs[m.key][need.Key] = need
		}
	}
	nodes, err := within(tx, where...)
	if err != nil {
		return nil, err
	}
	out := map[string]Runner{}
	for _, n := range nodes {
		if id := n.Profile.MachineID; id != "" && p.Machine != "" && id != p.Machine {
			continue
		}
		r := Runner{ID: n.ID, Node: n.Name, Needs: map[string]Need{}}
		for _, key := range s.on(n) {
			maps.Copy(r.Needs, needs[key])
		}
		if len(r.Needs) > 0 {
			out[n.ID] = r
		}
	}
	return out, nil
}

// needs says whether a resource is the program's process, binary or state.
func (p Program) needs(r *declaration.Resource) bool {
	switch {
	case r.Process != nil:
		return p.Command(r.Process.Command[0])
	case r.File != nil:
		return p.Command(r.File.Path) || p.State(r.File.Path)
	}
	return false
}

// Without returns what of the needs after does not have any more, or not with
// the same command, sorted by key.
func (r Runner) Without(after map[string]Runner) []Need {
	var out []Need
	for key, need := range r.Needs {
		if now, ok := after[r.ID].Needs[key]; !ok || !slices.Equal(now.Command, need.Command) {
			out = append(out, need)
		}
	}
	slices.SortFunc(out, func(a, b Need) int { return cmp.Compare(a.Key, b.Key) })
	return out
}
