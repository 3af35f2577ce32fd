package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
)

// compile compiles the programs of "src", as GoReleaser would.
func compile(t *testing.T, version, to string) (x86, all []string) {
	t.Helper()
	c, err := build.New(t.Context(), "src")
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"x86_64", "aarch64"} {
		for _, id := range []string{"mesh-host", "mesh-controller"} {
			dir := filepath.Join(to, arch)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			file, err := c.Build(t.Context(), id, arch, version, dir)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, file)
		}
	}
	return all[:2], all
}

func packed(t *testing.T) {
	x86, all := compile(t, "1.0.0", "bin")
	args := func(out string, programs ...string) []string {
		return append([]string{"pack", "--source", "src", "--version", "1.0.0", "--counter", "1700000000", "--keys", "keys", "--out", out}, programs...)
	}
	mesh(t, 0, args("packed", x86...)...)
	differences, err := compare("dist", "packed")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences {
		if !d.Same {
			t.Errorf("%s: %s", d.Name, d.How)
		}
	}

	// One at a time, all at once: one call makes the release, of all of them.
	var wait sync.WaitGroup
	said := make([]string, len(all))
	for i, program := range all {
		wait.Go(func() { said[i] = mesh(t, 0, args("collected/release", append([]string{"--collect"}, program)...)...) })
	}
	wait.Wait()
	if n := len(slices.DeleteFunc(said, func(s string) bool { return strings.Contains(s, "still to come: ") })); n != 1 {
		t.Errorf("%d calls made a release: %q", n, said)
	}
	policy := publisher(t).Policy
	m, err := check.ReadManifest("collected/release", policy)
	if err != nil || len(m.Architectures()) != 2 {
		t.Errorf("%v, %v", m.Architectures(), err)
	}
	if left, err := os.ReadDir("collected"); err != nil || len(left) != 1 {
		t.Errorf("left beside the release: %v, %v", left, err)
	}

	// What a killed run noted, and was compiled again since, is not in the set.
	one := func(program string) string { return mesh(t, 0, args("again/release", "--collect", program)...) }
	one(all[3])
	write(t, all[3], append(read(t, all[3]), 0))
	for _, program := range all[:3] {
		if said := one(program); !strings.Contains(said, "aarch64/mesh-controller") {
			t.Errorf("with a program that has changed since: %s", said)
		}
	}
	if said := one(all[3]); strings.Contains(said, "still to come") {
		t.Error(said)
	}

	if err := os.Mkdir("src/other", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, "src/other/main.go", []byte("package main\n\nfunc main() {}\n"))
	other := exec.Command("go", "build", "-o", "../bin/other", "./other")
	other.Dir, other.Env = "src", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := other.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for what, c := range map[string]struct {
		programs []string
		kind     fault.Kind
		says     string
	}{
		"one of two":             {x86[:1], fault.Refused, "there is no mesh-controller for x86_64"},
		"one twice":              {[]string{x86[0], x86[0], x86[1]}, fault.Refused, "there is another mesh-host for x86_64"},
		"one of no release":      {append(slices.Clone(x86), "bin/other"), fault.Refused, "a release has no"},
		"no program":             {[]string{x86[0], "src/LICENSE"}, fault.Refused, "it is no program for Linux"},
		"none":                   {[]string{"bin/none"}, fault.Failed, "no such file"},
		"none for this computer": {all[2:], fault.Failed, "describe"},
	} {
		if what == "none for this computer" && build.Architectures["x86_64"] != runtime.GOARCH {
			continue
		}
		if out := mesh(t, c.kind, args("bad", c.programs...)...); !strings.Contains(out, c.says) {
			t.Errorf("%s: %s", what, out)
		}
	}
	if _, err := os.Lstat("bad"); !os.IsNotExist(err) {
		t.Errorf("something was left: %v", err)
	}

	// A release takes the place of another; of anything else it does not.
	write(t, "packed/notes", nil)
	if out := mesh(t, fault.Refused, args("packed", x86...)...); !strings.Contains(out, `"notes" is in it, and no file of a release`) {
		t.Error(out)
	}
	if err := os.Remove("packed/notes"); err != nil {
		t.Fatal(err)
	}
	newest, _ := compile(t, "1.1.0", "newer")
	newer := args("packed", newest...)
	newer[4] = "1.1.0"
	mesh(t, 0, newer...)
	if _, err := check.Dir(t.Context(), "packed", check.Options{Policy: policy, Now: time.Now()}); err != nil {
		t.Error(err)
	}
	if m, err := check.ReadManifest("packed", policy); err != nil || m.Version != "1.1.0" {
		t.Errorf("%q, %v", m.Version, err)
	}
}
