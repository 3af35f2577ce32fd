package admin

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// Self is how a declaration speaks of this control plane: the program whose path
// under the layout's root is the running executable, on the machine of that id.
func Self(l layout.Layout, executable, machine string) module.Program {
	return module.Program{
		Command: func(p string) bool {
			if p = l.Path(p); p == executable {
				return true
			}
			// The kernel's name of the executable has no symlinks (proc_pid_exe(5)).
			real, err := filepath.EvalSymlinks(p)
			return err == nil && real == executable
		},
		State:   func(p string) bool { return l.Path(p) == l.ControllerState() },
		Machine: machine,
	}
}

// guarded does what verb says and refuses it when it takes away from a node what
// this control plane lives by: nobody would be left to take it back. fate says
// what becomes of that, last that it is meant.
func (d *Desk) guarded(tx *state.Tx, last bool, verb, fate string, do func() error) error {
	if last {
		return do()
	}
	before, err := module.Runners(tx, d.Self)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := module.Runners(tx, d.Self)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		r := before[id]
		lost := r.Without(after)
		if !r.Runs() || len(lost) == 0 {
			continue
		}
		var names []string
		for _, need := range lost {
			names = append(names, fmt.Sprintf("%q (module %q)", need.Key, need.Module))
		}
		return fault.Refusedf("cannot %s: node %q runs this control plane, and %s %s", verb, r.Node, strings.Join(names, ", "), fate).
			Hint("give --last if the control plane shall end")
	}
	return nil
}
