package pack

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nox-mesh/nox-mesh/release/internal/build"
)

// sources makes a source tree that has the shape of this project's; its programs
// print who they are and what they were asked.
func sources(t *testing.T, says string) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not here")
	}
	flags, err := os.ReadFile(filepath.Join("../../..", build.ConfigName))
	if err != nil {
		t.Fatal(err)
	}
	main := "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\n\t\"github.com/nox-mesh/nox-mesh/internal/version\"\n)\n\n" +
		"func main() { fmt.Println(\"" + says + "\", version.Running(), os.Args[1:]) }\n"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                                "module github.com/nox-mesh/nox-mesh\n\ngo 1.26\n",
		build.ConfigName:                        string(flags),
		"internal/version/version.go":           "package version\n\nvar version = \"0.0.0-dev\"\n\nfunc Running() string { return version }\n",
		"host/cmd/mesh-host/main.go":            main,
		"controlplane/cmd/mesh-controller/a.go": main,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compiled is a program of the source tree, for an architecture.
func compiled(t *testing.T, source, id, architecture string) string {
	t.Helper()
	c, err := build.New(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	file, err := c.Build(t.Context(), id, architecture, "1.0.0", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return file
}
