package unit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/resourcetest"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(spec string) resource.Want {
	r, err := declaration.FromSpec("it", []byte(spec))
	if err != nil {
		panic(err)
	}
	return resource.Want{Resource: r, Spec: r.Spec()}
}

// over makes the kind over a root, with a fake systemd.
func over(l layout.Layout) (*Kind, *fake) {
	f := &fake{l: l}
	k := New(Config{Layout: l})
	k.systemd, k.why = f, func() string { return "" }
	return k, f
}

func write(t testing.TB, l layout.Layout, file, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(l.Path(file)), 0o755))
	must(t, os.WriteFile(l.Path(file), []byte(text), 0o644))
}

const unitDir = "/etc/systemd/system/"

func TestUnitKeepsThePromises(t *testing.T) {
	wish := func(spec string) func(layout.Layout) resource.Want {
		return func(layout.Layout) resource.Want {
			w := want(spec)
			w.Resource.TakeOver = true
			return w
		}
	}
	file := unitDir + "it.service"
	resourcetest.Run(t, resourcetest.Suite{
		New: func(_ *testing.T, l layout.Layout) resource.Kind { k, _ := over(l); return k },
		Want: wish(`{"type":"unit","name":"it.service","content":"[Service]\nExecStart=/it\n[Install]\nWantedBy=a.target\n",
			"drop_ins":{"10-a.conf":"[Service]\nMemoryMax=1G\n"},"enabled":true,"active":true}`),
		Other: wish(`{"type":"unit","name":"it.service","content":"[Service]\nExecStart=/other\n[Install]\nWantedBy=b.target\n",
			"drop_ins":{"20-b.conf":""},"enabled":true,"active":true}`),
		Drifts: map[string]func(*testing.T, layout.Layout){
			"content": func(t *testing.T, l layout.Layout) { write(t, l, file, "[Service]\nExecStart=/IT\n") },
			"mode":    func(t *testing.T, l layout.Layout) { must(t, os.Chmod(l.Path(file), 0o666)) },
			"gone":    func(t *testing.T, l layout.Layout) { must(t, os.Remove(l.Path(file))) },
			"drop-in": func(t *testing.T, l layout.Layout) { write(t, l, file+".d/10-a.conf", "") },
			"drop-in of somebody's": func(t *testing.T, l layout.Layout) {
				write(t, l, file+".d/override.conf", "[Service]\nExecStart=\nExecStart=/evil\n")
			},
			"drop-in of somebody's in run": func(t *testing.T, l layout.Layout) {
				write(t, l, "/run/systemd/system/it.service.d/override.conf", "[Service]\n")
			},
			"link gone": func(t *testing.T, l layout.Layout) {
				must(t, os.Remove(l.Path(unitDir+"a.target.wants/it.service")))
			},
			"another link": func(t *testing.T, l layout.Layout) {
				must(t, os.MkdirAll(l.Path(unitDir+"c.target.wants"), 0o755))
				must(t, os.Symlink(file, l.Path(unitDir+"c.target.wants/it.service")))
			},
			"stopped": func(t *testing.T, l layout.Layout) {
				_, f := over(l)
				_, err := f.job(t.Context(), stop, "it.service")
				must(t, err)
			},
		},
		Before: func(t *testing.T, l layout.Layout) {
			write(t, l, file, "[Service]\nExecStart=/before\n")
			write(t, l, file+".d/10-a.conf", "[Service]\nNice=1\n")
		},
		Foreign: func(t *testing.T, l layout.Layout) { write(t, l, file, "[Service]\nExecStart=/somebodys\n") },
	})
}
