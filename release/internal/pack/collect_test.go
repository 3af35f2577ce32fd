package pack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

// TestWhoWaitsForASetThatIsRemovedLooksAgain: one call completes the set and
// removes it while another waits, and a third makes it anew. The other must wait
// for that one: it is still waiting when it is told to give up.
func TestWhoWaitsForASetThatIsRemovedLooksAgain(t *testing.T) {
	src := sources(t, "x")
	host := compiled(t, src, "mesh-host", "x86_64")
	top := t.TempDir()
	r := Release{Version: "1.0.0", Counter: 7, Source: src}
	dir := filepath.Join(top, ".release.programs-1.0.0-7-")
	lock := func() *place.Place {
		set, err := place.Open(filepath.Join(dir, "set"), true)
		if err == nil {
			err = place.Lock(t.Context(), set)
		}
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	first := lock()
	type answer struct {
		missing []string
		err     error
	}
	done := make(chan answer)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	go func() {
		_, missing, err := r.Collect(ctx, host, filepath.Join(top, "release"))
		done <- answer{missing, err}
	}()
	// It waits from when it has the directory open as well.
	waits := func() {
		for opened(t, dir) < 2 {
			select {
			case got := <-done:
				t.Fatalf("it did not wait: %v, %v", got.missing, got.err)
			default:
				runtime.Gosched()
			}
		}
	}
	waits()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	third := lock()
	first.Close()
	defer third.Close()
	waits()
	giveUp()
	if got := <-done; !errors.Is(got.err, context.Canceled) {
		t.Errorf("it did not wait for the third: %v, %v", got.missing, got.err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x86_64/mesh-host")); err == nil {
		t.Error("it noted its program meanwhile")
	}
}

// opened is how many descriptors of this process lead to dir.
func opened(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("there is no /proc")
	}
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.TrimSuffix(to, "/") == dir {
			n++
		}
	}
	return n
}

// TestAStrangersSetIsLeft: a folder that has the name of a set, and whatever a
// symlink of that name leads to, is neither filled nor removed.
func TestAStrangersSetIsLeft(t *testing.T) {
	src := sources(t, "x")
	host := compiled(t, src, "mesh-host", "x86_64")
	r := Release{Version: "1.0.0", Counter: 7, Source: src, Commit: "0123456789abcdef"}
	for what, lay := range map[string]func(dir, home string) error{
		"a folder":  func(dir, _ string) error { return os.CopyFS(dir, os.DirFS(src)) },
		"a symlink": func(dir, home string) error { return os.Symlink(home, dir) },
	} {
		top, home := t.TempDir(), t.TempDir()
		dir := filepath.Join(top, ".cs.programs-1.0.0-7-0123456789ab")
		if err := lay(dir, home); err != nil {
			t.Fatal(err)
		}
		_, _, err := r.Collect(t.Context(), host, filepath.Join(top, "cs"))
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "mesh-release did not make it") {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Lstat(dir); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, in := range []string{dir, home} {
			if _, err := os.Stat(in + "/x86_64"); err == nil {
				t.Errorf("%s: %s was filled", what, in)
			}
		}
	}
}
