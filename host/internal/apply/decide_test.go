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
		formerly       bool
	}{
		{"nothing there", nil, resource.State{}, false, false, false, Create, false},
		{"ours is gone", ours, resource.State{}, false, false, false, Create, false},
		{"as declared, and nobody's", nil, same, false, false, false, Adopt, false},
		{"as declared, and ours", ours, same, false, false, false, Keep, false},
		{"as declared, what it uses changed", ours, same, true, false, false, Restart, false},
		{"as declared, nobody's, what it uses changed", nil, same, true, false, false, Restart, false},
		{"it fails, and is left to its back-off", ours, failing, false, false, false, Keep, false},
		{"it fails, and a person asks", ours, failing, false, true, false, Restart, false},
		{"it does well, and a person asks", ours, same, false, true, false, Keep, false},
		{"drift", ours, off, false, false, false, Change, false},
		{"drift, and what it uses changed", ours, off, true, false, false, Change, false},
		{"somebody's", nil, foreign, false, false, false, Conflict, false},
		{"somebody's, what it uses changed", nil, foreign, true, true, false, Conflict, false},
		{"somebody's, taken over", nil, foreign, false, false, true, Change, false},
		{"ours, made anew by somebody", ours, foreign, false, false, false, Change, false},
		{"what nothing may take the place of", ours, resource.State{Exists: true, Blocked: "a directory is there"}, true, true, true, Conflict, false},
		{"ours before the store was lost, made anew by somebody", nil, foreign, false, false, false, Change, true},
		{"another thing that this kind replaces", nil, off, false, false, false, Change, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &declaration.Resource{TakeOver: c.takeOver}
			if got := decide(r, c.prior, c.found, c.restart, c.again, c.formerly); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
