package place

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestASetIsMarkedAndRemoved: what a kill left at any instant is taken up.
func TestASetIsMarkedAndRemoved(t *testing.T) {
	for what, all := range map[string]map[string]string{
		"nothing":                   {},
		"before the mark":           {".set/": ""},
		"while it was marked":       {".set/" + durable.TempName(mark): "mesh-rel"},
		"after a program was noted": {".set/" + mark: markText, ".set/x86_64/mesh-host": "noted"},
	} {
		t.Run(what, func(t *testing.T) {
			top := t.TempDir()
			lay(t, top, all)
			path := filepath.Join(top, ".set")
			for range 2 { // the second finds what the first left
				s, err := OpenSet(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				if b, err := os.ReadFile(path + "/" + mark); err != nil || string(b) != markText {
					t.Errorf("its mark is %q, %v", b, err)
				}
				lay(t, path, map[string]string{"x86_64/mesh-controller": "noted"})
				s.Close()
			}
			if b, err := os.ReadFile(path + "/x86_64/mesh-host"); (err == nil) != (all[".set/x86_64/mesh-host"] != "") {
				t.Errorf("%q, %v", b, err)
			}
			s, err := OpenSet(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Remove(); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(top); err != nil || len(left) != 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// TestAStrangersSetIsLeft: a folder that only has its name, and whatever a symlink
// leads to, is neither filled nor removed.
func TestAStrangersSetIsLeft(t *testing.T) {
	home := t.TempDir()
	for what, lays := range map[string]func(t *testing.T, path string) error{
		"a folder":             func(t *testing.T, path string) error { lay(t, path, map[string]string{"thesis": "mine"}); return nil },
		"another's mark":       func(t *testing.T, path string) error { lay(t, path, map[string]string{mark: "mine"}); return nil },
		"a file":               func(t *testing.T, path string) error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"a symlink":            func(t *testing.T, path string) error { return os.Symlink(home, path) },
		"a symlink to nothing": func(t *testing.T, path string) error { return os.Symlink(home+"/none", path) },
	} {
		t.Run(what, func(t *testing.T) {
			top := t.TempDir()
			path := filepath.Join(top, ".set")
			if err := lays(t, path); err != nil {
				t.Fatal(err)
			}
			before := listed(t, top)
			s, err := OpenSet(t.Context(), path)
			if err == nil {
				s.Close()
			}
			if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "mesh-release did not make it") || fault.RemedyOf(err) == "" {
				t.Errorf("%v", err)
			}
			if after := listed(t, top); len(after) != len(before) {
				t.Errorf("there is %v, there was %v", after, before)
			}
		})
	}
	if left, err := os.ReadDir(home); err != nil || len(left) != 0 {
		t.Errorf("through the symlink: %v, %v", left, err)
	}
}

// TestTempSweepsTheDead: what a killed run left goes, and nothing else that only has
// its name.
func TestTempSweepsTheDead(t *testing.T) {
	top := t.TempDir()
	t.Setenv("TMPDIR", top)
	lives, done, err := Temp()
	if err != nil {
		t.Fatal(err)
	}
	lay(t, lives, map[string]string{"work": "now"})
	within, err := Open(lives+"/d", false)
	if err == nil {
		err = flock(t.Context(), within.parent.FD(), func() {})
		within.Close()
	}
	if err != nil {
		t.Errorf("a place in it cannot be locked: %v", err)
	}
	home := t.TempDir()
	lay(t, home, map[string]string{mark: markText, "thesis": "mine"})
	lay(t, top, map[string]string{
		"mesh-release-dead/" + mark: markText, "mesh-release-dead/work/half": "x",
		"mesh-release-mine/thesis": "mine", "mesh-release-open/" + mark: markText, "other/" + mark: markText,
	})
	for name, mode := range map[string]os.FileMode{"dead": 0o700, "mine": 0o700, "open": 0o755} {
		if err := os.Chmod(top+"/mesh-release-"+name, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(home, top+"/mesh-release-link"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(top+"/mesh-release-pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	another, doneToo, err := Temp()
	if err != nil {
		t.Fatal(err)
	}
	for path, stays := range map[string]bool{
		top + "/mesh-release-dead": false, lives + "/work": true, another: true, home + "/thesis": true, top + "/other": true,
		top + "/mesh-release-mine/thesis": true, top + "/mesh-release-open": true, top + "/mesh-release-link": true, top + "/mesh-release-pipe": true,
	} {
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s: %v, want it there: %v", path, err, stays)
		}
	}
	if err := errors.Join(done(), doneToo()); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{lives, another} {
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

func TestNowhereToWork(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	if _, _, err := Temp(); fault.KindOf(err) != fault.Failed || !strings.Contains(fault.RemedyOf(err), "TMPDIR") {
		t.Errorf("%v; %s", err, fault.RemedyOf(err))
	}
}
