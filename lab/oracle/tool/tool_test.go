package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A heard test takes down how Need ends it.
type heard struct {
	testing.TB
	skipped, failed string
}

func (h *heard) Helper() {}

func (h *heard) Fatalf(format string, args ...any) {
	h.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (h *heard) Skipf(format string, args ...any) {
	h.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func need(t *testing.T, program string) (path string, h *heard) {
	h = &heard{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		path = Need(h, program)
	}()
	<-done
	return path, h
}

func TestAProgramThatIsNotHereSkipsOrFails(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("NOX_LAB_CACHE", cache)
	t.Setenv("PATH", cache)
	t.Setenv("NOX_REQUIRE_MACHINE", "")
	const why = "cosign is not here: lab/tools.sh --build builds it"
	if err := os.Mkdir(filepath.Join(cache, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(cache, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	put("cosign", 0o755) // somebody's, of any version
	if path, h := need(t, "cosign"); path != "" || h.skipped != why || h.failed != "" {
		t.Errorf("%q, %+v", path, h)
	}
	put("tools/cosign", 0o644)
	t.Setenv("NOX_REQUIRE_MACHINE", "1")
	if path, h := need(t, "cosign"); path != "" || h.skipped != "" || h.failed != why {
		t.Errorf("%q, %+v", path, h)
	}
	put("tools/oras", 0o755)
	if path, h := need(t, "oras"); path != filepath.Join(cache, "tools/oras") || h.skipped+h.failed != "" {
		t.Errorf("%q, %+v", path, h)
	}
}

func TestAVersionIsWhatTheProgramSays(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("NOX_LAB_CACHE", dir)
	t.Setenv("PATH", dir)
	for said, want := range map[string]string{
		"skopeo version 1.9.3":                          "1.9.3",
		"tar (GNU tar) 1.34":                            "1.34",
		"ctr github.com/containerd/containerd 1.6.20~d": "1.6.20",
	} {
		if err := os.WriteFile(filepath.Join(dir, "program"), []byte("#!/bin/sh\necho '"+said+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := Version(t, "program"); got != want {
			t.Errorf("%q is version %q, not %q", said, got, want)
		}
	}
}
