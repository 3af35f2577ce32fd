// Package resourcetest is the one set of promises that every kind of resource
// is held to (the contract is resource.Kind). A kind's own test calls Run with
// a Suite; what only that kind promises it tests itself.
//
// Each promise is a subtest over a fresh root, so that nothing one of them
// leaves behind can help the next. The machine is looked at from outside: by
// the tree below the root (names, inodes, times, modes, content), not by what
// the kind says about itself.
package resourcetest

import (
	"testing"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Suite is what the promises need to know of a kind.
type Suite struct {
	// New makes the kind over the layout of a fresh, empty root. It is called
	// again in another process for the test that kills it, so what it needs it
	// makes itself and does not keep in variables of the test.
	New func(t *testing.T, l layout.Layout) resource.Kind
	// Prepare, if set, lays down what must be there before (a program to run).
	Prepare func(t *testing.T, l layout.Layout)
	// Want is the wish; Other is another wish for the same key.
	Want, Other func(l layout.Layout) resource.Want
	// Drifts are the ways a stranger may change the applied thing, by name.
	Drifts map[string]func(t *testing.T, l layout.Layout)
	// Before, if set, makes a thing of that name that the kind replaces and
	// that Remove gives back.
	Before func(t *testing.T, l layout.Layout)
	// Foreign, if set, makes a thing of that name that the kind must report as
	// somebody else's.
	Foreign func(t *testing.T, l layout.Layout)
}

// Run holds the kind to every promise, one subtest each.
func Run(t *testing.T, s Suite) {
	if applyAndDie(t, s) {
		return
	}
	t.Run("Applied", s.applied)
	t.Run("SecondPassIsSilent", s.silent)
	t.Run("ChangedWishIsApplied", s.changed)
	for name, drift := range s.Drifts {
		t.Run("Drift/"+name, func(t *testing.T) { s.drift(t, drift) })
	}
	t.Run("RemoveLeavesNothing", s.removed)
	t.Run("RemoveGivesBack", s.givenBack)
	t.Run("Adopted", s.adopted)
	t.Run("ForeignIsReported", s.foreign)
	t.Run("KilledAnywhereConverges", s.killed)
}
