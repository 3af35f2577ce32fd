package file_test

import (
	"os"
	"testing"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/file"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/resourcetest"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wish(spec string) func(layout.Layout) resource.Want {
	return func(layout.Layout) resource.Want {
		r, err := declaration.FromSpec("it", []byte(spec))
		if err != nil {
			panic(err)
		}
		return resource.Want{Resource: r, Spec: r.Spec()}
	}
}

// suite is what the three sorts of file have in common.
func suite() resourcetest.Suite {
	return resourcetest.Suite{
		New: func(t *testing.T, l layout.Layout) resource.Kind {
			// Beside the root: the child that is killed finds it made, and is
			// killed in our own calls.
			store, err := content.Open(l.Root + ".content")
			must(t, err)
			return file.New(file.Config{Layout: l, Content: store})
		},
		Prepare: func(t *testing.T, l layout.Layout) {
			must(t, os.MkdirAll(l.Path("/etc"), 0o755))
		},
	}
}

type drifts = map[string]func(*testing.T, layout.Layout)

func TestFileKeepsThePromises(t *testing.T) {
	s := suite()
	s.Want = wish(`{"type":"file","path":"/etc/it","mode":"0640","content":"one"}`)
	s.Other = wish(`{"type":"file","path":"/etc/it","mode":"0600","content":"two"}`)
	s.Before = func(t *testing.T, l layout.Layout) {
		must(t, os.WriteFile(l.Path("/etc/it"), []byte("before"), 0o600))
	}
	s.Drifts = drifts{
		"content": func(t *testing.T, l layout.Layout) {
			must(t, os.WriteFile(l.Path("/etc/it"), []byte("ONE"), 0))
		},
		"mode": func(t *testing.T, l layout.Layout) { must(t, os.Chmod(l.Path("/etc/it"), 0o777)) },
		"gone": func(t *testing.T, l layout.Layout) { must(t, os.Remove(l.Path("/etc/it"))) },
		"symlink": func(t *testing.T, l layout.Layout) {
			must(t, os.Remove(l.Path("/etc/it")))
			must(t, os.Symlink("elsewhere", l.Path("/etc/it")))
		},
		"directory gone": func(t *testing.T, l layout.Layout) { must(t, os.RemoveAll(l.Path("/etc"))) },
	}
	resourcetest.Run(t, s)
}

func TestSymlinkKeepsThePromises(t *testing.T) {
	s := suite()
	s.Want = wish(`{"type":"file","path":"/etc/it","target":"one"}`)
	s.Other = wish(`{"type":"file","path":"/etc/it","target":"two"}`)
	s.Before = func(t *testing.T, l layout.Layout) {
		must(t, os.Symlink("before", l.Path("/etc/it")))
	}
	s.Drifts = drifts{
		"gone": func(t *testing.T, l layout.Layout) { must(t, os.Remove(l.Path("/etc/it"))) },
		"file": func(t *testing.T, l layout.Layout) {
			must(t, os.Remove(l.Path("/etc/it")))
			must(t, os.WriteFile(l.Path("/etc/it"), []byte("x"), 0o600))
		},
	}
	resourcetest.Run(t, s)
}

func TestDirectoryKeepsThePromises(t *testing.T) {
	s := suite()
	s.Want = wish(`{"type":"file","path":"/etc/it","directory":true,"mode":"0750"}`)
	s.Other = wish(`{"type":"file","path":"/etc/it","directory":true,"mode":"1777"}`)
	s.Drifts = drifts{
		"mode": func(t *testing.T, l layout.Layout) { must(t, os.Chmod(l.Path("/etc/it"), 0o777)) },
		"gone": func(t *testing.T, l layout.Layout) { must(t, os.Remove(l.Path("/etc/it"))) },
	}
	resourcetest.Run(t, s)
}
