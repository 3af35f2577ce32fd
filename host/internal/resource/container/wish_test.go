package container

import (
	"os"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

func wish(t *testing.T, spec string) resource.Want {
	t.Helper()
	r, err := declaration.FromSpec("web", []byte(spec))
	must(t, err)
	return resource.Want{Resource: r, Spec: r.Spec()}
}

// recordOf is the record that the engine makes.
func recordOf(w resource.Want, prior *resource.Record, found resource.State) *resource.Record {
	r := &resource.Record{Key: w.Resource.Key(), ID: w.Resource.ID, Type: w.Resource.Type, Spec: w.Spec, Before: found.Found}
	if prior != nil {
		r.Before = prior.Before
	}
	return r
}

// shortDir is a directory whose path leaves room for a socket (unix(7)).
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nox")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}
