package apply

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// built builds mesh-host, and returns its path.
func built(b *testing.B) string {
	b.Helper()
	top, err := filepath.Abs("../../..")
	must(b, err)
	bin := filepath.Join(b.TempDir(), "mesh-host")
	run(b, top, []string{"CGO_ENABLED=0"}, "go", "build", "-o", bin, "./host/cmd/mesh-host")
	return bin
}

// declared writes the declaration of the tree into dir.
func declared(b *testing.B, dir string, t tree) {
	b.Helper()
	type resource struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Path    string `json:"path"`
		Content string `json:"content"`
		Mode    string `json:"mode"`
	}
	list := make([]resource, t.files)
	for i := range list {
		list[i] = resource{filepath.Base(t.name(i)), "file", "/" + t.name(i), t.text(i), "0640"}
	}
	doc, err := json.Marshal(map[string]any{"schema": 1, "name": "bench", "resources": list})
	must(b, err)
	must(b, os.WriteFile(filepath.Join(dir, "declaration.json"), doc, 0o600))
}

func host(b *testing.B, dir string, t tree) work {
	b.Helper()
	bin := built(b)
	declared(b, dir, t)
	apply := []string{bin, "--root", "into", "--quiet", "apply", "declaration.json"}
	return work{name: "mesh-host apply", version: firstLine(b, bin, "version"), first: apply, again: apply, durable: true, looks: true}
}

// fresh is the tree's root as it is before a first pass.
func fresh(b *testing.B, dir string, t tree) (into string) {
	b.Helper()
	into = filepath.Join(dir, "into")
	must(b, os.RemoveAll(into))
	t.folders(b, into)
	must(b, os.MkdirAll(filepath.Join(into, "var/lib/nox-mesh"), 0o700)) // as `mesh-host install` leaves it
	return into
}
