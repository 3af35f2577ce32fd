package apply

import (
	"testing"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

func TestDecide(t *testing.T) {
	same, off := resource.State{Exists: true, Same: true}, resource.State{Exists: true}
	failing := resource.State{Exists: true, Same: true, Failing: "exited with 1"}
	foreign := resource.State{Exists: true, Foreign: true}
	ours := &resource.Record{}
	for _, c := range []struct {
		name           string
		prior          *resource.Record
		found          resource.State
		restart, again bool
		takeOver       bool
		want           Action
	}{
		{"nothing there", nil, resource.State{}, false, false, false, Create},
		{"ours is gone", ours, resource.State{}, false, false, false, Create},
		{"as declared, and nobody's", nil, same, false, false, false, Adopt},
		{"as declared, and ours", ours, same, false, false, false, Keep},
		{"as declared, what it uses changed", ours, same, true, false, false, Restart},
		{"as declared, nobody's, what it uses changed", nil, same, true, false, false, Restart},
		{"it fails, and is left to its back-off", ours, failing, false, false, false, Keep},
		{"it fails, and a person asks", ours, failing, false, true, false, Restart},
		{"it does well, and a person asks", ours, same, false, true, false, Keep},
		{"drift", ours, off, false, false, false, Change},
		{"drift, and what it uses changed", ours, off, true, false, false, Change},
		{"somebody's", nil, foreign, false, false, false, Conflict},
		{"somebody's, what it uses changed", nil, foreign, true, true, false, Conflict},
		{"somebody's, taken over", nil, foreign, false, false, true, Change},
		{"ours, made anew by somebody", ours, foreign, false, false, false, Change},
		{"what nothing may take the place of", ours, resource.State{Exists: true, Blocked: "a directory is there"}, true, true, true, Conflict},
		{"another thing that this kind replaces", nil, off, false, false, false, Change},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &declaration.Resource{TakeOver: c.takeOver}
			if got := decide(r, c.prior, c.found, c.restart, c.again); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
