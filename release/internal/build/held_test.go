package build

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// made compiles the small program of source as somebody else would, with go alone.
func made(t *testing.T, dir string, env []string, args ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "a")
	c := exec.Command("go", append(append([]string{"build", "-o", out}, args...), "./cmd/a")...)
	c.Dir = dir
	c.Env = append(append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOAMD64=v1"), env...)
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const linked = "-s -w -buildid= -X main.version="

// TestAProgramShowsHowItWasCompiled: by go itself, with one thing different each
// time.
func TestAProgramShowsHowItWasCompiled(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not here")
	}
	dir := source(t)
	c, err := Read(filepath.Join(dir, ConfigName))
	if err != nil {
		t.Fatal(err)
	}
	good := []string{"-trimpath", "-buildvcs=false", "-ldflags=" + linked + "1.0.0"}
	for what, x := range map[string]struct {
		goarch string
		env    []string
		args   []string
		says   string
	}{
		"as the file says":                  {"amd64", nil, good, ""},
		"for the other machine":             {"arm64", []string{"GOARCH=arm64"}, good, ""},
		"for newer machines":                {"amd64", []string{"GOAMD64=v3"}, good, "with GOAMD64=v3; .goreleaser.yaml means v1"},
		"with paths":                        {"amd64", nil, good[1:], "-trimpath=true"},
		"with tags":                         {"amd64", nil, append([]string{"-tags=mine"}, good...), "with -tags=mine, which .goreleaser.yaml does not have"},
		"by a flag of the machine":          {"amd64", []string{"GOFLAGS=-tags=mine"}, good, "with -tags=mine"},
		"for a debugger":                    {"amd64", nil, append([]string{"-gcflags=-N"}, good...), "with -gcflags=-N"},
		"with symbols":                      {"amd64", nil, []string{good[0], good[1], "-ldflags=-buildid= -X main.version=1.0.0"}, "without -ldflags=-s"},
		"with a build id":                   {"amd64", nil, []string{good[0], good[1], "-ldflags=-s -w -X main.version=1.0.0"}, "without -ldflags=-buildid="},
		"for another machine than one says": {"arm64", nil, good, "GOARCH"},
	} {
		err := c.Hold("a", x.goarch, bytes.NewReader(made(t, dir, x.env, x.args...)))
		if x.says == "" {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), x.says) || fault.RemedyOf(err) == "" {
			t.Errorf("%s: %v, want it to say %q", what, err, x.says)
		}
	}
	if err := c.Hold("a", "amd64", strings.NewReader("#!/bin/sh\n")); fault.KindOf(err) != fault.Refused {
		t.Errorf("no program: %v", err)
	}
}

func TestTheVersionIsReadFromTheFile(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not here")
	}
	dir := source(t)
	// Strings that look like versions, and are the program's own.
	main := "package main\n\nvar version = \"0.0.0-dev\"\nvar oldest = \"0.9.0\"\nvar all = []string{\"2.0.0\", \"3.0.0\"}\nvar other string\n\n" +
		"func main() { println(version, oldest, all[len(version)%2], other) }\n"
	if err := os.WriteFile(filepath.Join(dir, "cmd/a/a.go"), []byte(main), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, x := range map[string]struct {
		env     []string
		ldflags string
		want    string
		says    string
	}{
		"stripped":           {nil, linked + "1.0.0", "1.0.0", ""},
		"a pre-release":      {nil, linked + "1.0.0-rc.1", "1.0.0-rc.1", ""},
		"a snapshot":         {nil, linked + "0.0.1-next.1700000000", "0.0.1-next.1700000000", ""},
		"with symbols":       {nil, "-X main.version=1.0.0", "1.0.0", ""},
		"of another machine": {[]string{"GOARCH=arm64"}, linked + "1.0.0", "1.0.0", ""},
		"with a word more":   {nil, linked + "1.0.0 -X main.other=word", "1.0.0", ""},
		"set to nothing":     {nil, linked, "", "no version is linked into it"},
		"not set":            {nil, "-s -w", "", "no version is linked into it"},
		"two":                {nil, linked + "1.0.0 -X main.other=2.0.0", "", "more than one version is linked into it: 1.0.0, 2.0.0"},
	} {
		b := made(t, dir, x.env, "-trimpath", "-ldflags="+x.ldflags)
		e, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Version(e)
		if x.says == "" && (got != x.want || err != nil) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
		if x.says != "" && (fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
		// One that ends early is refused, not read beyond.
		if e, err := elf.NewFile(bytes.NewReader(b[:len(b)/2])); err == nil {
			if got, err := Version(e); err == nil {
				t.Errorf("%s, half of it: %q", what, got)
			}
		}
	}
}
