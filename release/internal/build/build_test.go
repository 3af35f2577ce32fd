package build

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestFlagsOfThisProject(t *testing.T) {
	c, err := Read("../../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for id, main := range map[string]string{
		"mesh-host": "./host/cmd/mesh-host", "mesh-controller": "./controlplane/cmd/mesh-controller", "mesh-release": "./release/cmd/mesh-release",
	} {
		for _, goarch := range []string{"amd64", "arm64"} {
			target, err := c.target(id, goarch)
			if err != nil {
				t.Fatal(err)
			}
			args, err := target.arguments("1.2.3", "/out")
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"build", "-trimpath", "-buildvcs=false",
				"-ldflags=-s -w -buildid= -X github.com/nox-mesh/nox-mesh/internal/version.version=1.2.3", "-o", "/out", main}
			if !slices.Equal(args, want) {
				t.Errorf("%s: %q", id, args)
			}
			if !slices.Equal(target.Env, []string{"CGO_ENABLED=0"}) || target.ModTimestamp != "{{ .CommitTimestamp }}" {
				t.Errorf("%s: %+v", id, target)
			}
		}
	}
	if len(c.Targets) != 3 {
		t.Errorf("%d builds", len(c.Targets))
	}
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	const good = "builds:\n  - {id: a, main: ./a, binary: a, goos: [linux], goarch: [amd64]"
	for what, text := range map[string]string{
		"a key":                   good + ", asmflags: [x]}\n",
		"another system":          "builds:\n  - {id: a, main: ./a, binary: a, goos: [darwin], goarch: [amd64]}\n",
		"no main":                 "builds:\n  - {id: a, binary: a, goos: [linux], goarch: [amd64]}\n",
		"no list":                 "builds: 7\n",
		"no YAML":                 "builds: [\n",
		"a tab where none may be": "builds:\n\t- id: a\n",
	} {
		if _, err := parse([]byte(text)); fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %v", what, err)
		}
	}
	c, err := parse([]byte(good + ", ldflags: [\"{{ .Date }}\"]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Targets[0].arguments("1.0.0", "/out"); fault.KindOf(err) != fault.Refused {
		t.Errorf("a template: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("builds:\n  - {id: a, main: ./a, binary: a, goos: [linux], goarch: [amd64]}\n"))
	f.Add([]byte("a: &a [x]\nbuilds: [*a]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parse(b)
		if err != nil {
			return
		}
		for _, target := range c.Targets {
			if target.ID == "" || target.Main == "" {
				t.Fatalf("accepted %+v", target)
			}
		}
	})
}

func source(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module example.test/m\n\ngo 1.26\n",
		"cmd/a/a.go": "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
		ConfigName: "builds:\n  - id: a\n    main: ./cmd/a\n    binary: a\n    env: [CGO_ENABLED=0]\n" +
			"    flags: [-trimpath, -buildvcs=false]\n    ldflags: [\"-s -w -buildid= -X main.version={{.Version}}\"]\n    goos: [linux]\n    goarch: [amd64, arm64]\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestNothingOfTheEnvironmentGetsIn(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not here")
	}
	compile := func() string {
		c, err := New(t.Context(), source(t))
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Build(t.Context(), "a", "x86_64", "1.0.0", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := compile()
	for k, v := range map[string]string{
		"GOFLAGS": "-ldflags=-X=main.version=evil", "GOAMD64": "v3", "GOEXPERIMENT": "nogreenteagc", "GOWORK": "/none", "TZ": "Asia/Kolkata", "GOMAXPROCS": "1",
	} {
		t.Setenv(k, v)
	}
	if compile() != first {
		t.Error("the environment changed the binary")
	}
	if !strings.Contains(first, "1.0.0") {
		t.Error("the version is not in the binary")
	}
}

func TestOtherArchitecture(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not here")
	}
	c, err := New(t.Context(), source(t))
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Build(t.Context(), "a", "aarch64", "1.0.0", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != elf.EM_AARCH64 {
		t.Errorf("built for %v", f.Machine)
	}
	for what, build := range map[string]func() error{
		"arch": func() error { _, err := c.Build(t.Context(), "a", "mips", "1.0.0", t.TempDir()); return err },
		"id":   func() error { _, err := c.Build(t.Context(), "b", "x86_64", "1.0.0", t.TempDir()); return err },
	} {
		if build() == nil {
			t.Errorf("another %s was built", what)
		}
	}
}
