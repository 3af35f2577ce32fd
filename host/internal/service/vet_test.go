package service

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// TestS12AHostThatDoesNotRunHereIsNotPutInPlace: where the host does the swap, what
// is declared as its own program is tried before.
func TestS12AHostThatDoesNotRunHereIsNotPutInPlace(t *testing.T) {
	cfg := machine(t)
	dir := cfg.Layout.LauncherDir()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	own := cfg.Layout.HostBinary("/usr/local")
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, []byte("the one that runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.start(beat{})
	defer s.Close()
	generation := 0
	apply := func(content, path string) (outcome declaration.Outcome, said string) {
		t.Helper()
		sum, _, err := s.content.Add(t.Context(), strings.NewReader(content), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if sum != digest.FromString(content) {
			t.Fatalf("the content is %s", sum)
		}
		generation++
		r, err := s.Apply(t.Context(), fmt.Appendf(nil, `{"schema": 1, "name": "a", "generation": %d, "resources": [
			{"id": "host", "type": "file", "path": %q, "mode": "0755", "source": %q}]}`, generation, path, sum))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Resources {
			if x.Key == "file:"+path {
				return x.Outcome, x.Error
			}
		}
		t.Fatalf("%+v", r)
		return "", ""
	}
	for content, why := range map[string]string{
		"no program":                                        "does not run on this machine",
		"#!/bin/sh\nexit 3\n":                               "does not run on this machine",
		"#!/bin/sh\necho something else\n":                  "does not say that it is one",
		"#!/bin/sh\n[ \"$1\" = version ] || echo mesh-host": "does not say that it is one",
	} {
		if outcome, said := apply(content, "/usr/local/bin/mesh-host"); outcome != declaration.Failed || !strings.Contains(said, why) {
			t.Errorf("%q is %s: %s", content, outcome, said)
		}
		if b, err := os.ReadFile(own); err != nil || !bytes.Equal(b, []byte("the one that runs")) {
			t.Errorf("%q was put in place: %q, %v", content, b, err)
		}
	}
	const good = "#!/bin/sh\necho mesh-host 9.9.9 linux/any\n"
	if outcome, said := apply(good, "/usr/local/bin/mesh-host"); outcome != declaration.Applied {
		t.Errorf("a good one is %s: %s", outcome, said)
	}
	if out, err := exec.Command(own, "version").Output(); err != nil || !strings.HasPrefix(string(out), "mesh-host 9.9.9") {
		t.Errorf("%q %v", out, err)
	}
	// Elsewhere it may be anything.
	if outcome, said := apply("no program", "/usr/local/bin/other"); outcome != declaration.Applied {
		t.Errorf("another file is %s: %s", outcome, said)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left beside the launcher: %v, %v", left, err)
	}
}
