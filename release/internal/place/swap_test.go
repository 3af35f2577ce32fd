package place

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestWhatASymlinkLeadsToIsMeant, or there is nothing, and it is left.
func TestWhatASymlinkLeadsToIsMeant(t *testing.T) {
	top := t.TempDir()
	lay(t, top, map[string]string{"real/d/": "", "file": "mine"})
	for name, to := range map[string]string{"good": "real/d", "dangling": "nowhere", "round": "round", "folder": "none/at/all"} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := listed(t, top)
	for _, name := range []string{"dangling", "folder", "folder/d", "folder/d/e"} {
		_, resolved := Resolve(filepath.Join(top, name))
		for _, create := range []bool{false, true} {
			_, err := Open(filepath.Join(top, name), create)
			for _, err := range []error{err, resolved} {
				if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "is a symlink") || fault.RemedyOf(err) == "" || errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	if _, err := Open(filepath.Join(top, "round"), true); err == nil {
		t.Error("a symlink to itself is a place")
	}
	if after := listed(t, top); !slices.Equal(before, after) {
		t.Errorf("there is %v, there was %v", after, before)
	}
	p, err := Open(filepath.Join(top, "good"), false)
	if err != nil || p.Path != filepath.Join(top, "real/d") {
		t.Fatalf("%v, %v", p, err)
	}
	p.Close()
	if _, err := Open(filepath.Join(top, "none/d"), false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without its parent: %v", err)
	}
}

// TestASwappedParentIsNotOpened: a symlink that comes after it was resolved would lead
// into a directory that nobody named.
func TestASwappedParentIsNotOpened(t *testing.T) {
	top, home := t.TempDir(), t.TempDir()
	lay(t, top, map[string]string{"a/b/d/": ""})
	meanwhile = func(string) {
		if err := errors.Join(os.Rename(top+"/a", top+"/gone"), os.Symlink(home, top+"/a"), os.Mkdir(home+"/b", 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { meanwhile = func(string) {} }()
	if _, err := Open(top+"/a/b/d", false); fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "symlink") || fault.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
}

// TestOnlyADirectoryIsReplaced: whatever else is there stays, also what comes there
// while the new directory is filled.
func TestOnlyADirectoryIsReplaced(t *testing.T) {
	home := t.TempDir()
	lay(t, home, map[string]string{"thesis": "mine"})
	put := func(what, path string) error {
		switch what {
		case "a file":
			return os.WriteFile(path, []byte("mine"), 0o600)
		case "a directory":
			return os.Mkdir(path, 0o700)
		case "a symlink to nothing":
			return os.Symlink(home+"/none", path)
		}
		return os.Symlink(home, path)
	}
	for _, what := range []string{"a file", "a symlink", "a symlink to nothing", "a directory"} {
		for when, there := range map[string]bool{"before": true, "instead": true, "meanwhile": false} {
			t.Run(what+" "+when, func(t *testing.T) {
				p := at(t)
				if there && when != "before" {
					lay(t, p.Path, map[string]string{"old": "old"})
				}
				if when == "before" {
					if what == "a directory" {
						return
					}
					if err := put(what, p.Path); err != nil {
						t.Fatal(err)
					}
				}
				err := p.Begin()
				if when == "before" {
					if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "no directory") || fault.RemedyOf(err) == "" {
						t.Errorf("%v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				err = p.Replace(func(*durable.Dir) error {
					if there {
						if err := os.Rename(p.Path, p.Path+"2"); err != nil {
							return err
						}
					}
					return put(what, p.Path)
				})
				if fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "somebody changed") || fault.RemedyOf(err) == "" {
					t.Errorf("%v", err)
				}
				fi, err := os.Lstat(p.Path)
				if err != nil || fi.IsDir() != (what == "a directory") {
					t.Errorf("%v, %v", fi, err)
				}
				left, err := os.ReadDir(filepath.Dir(p.Path))
				if want := map[bool]int{true: 2, false: 1}[there]; err != nil || len(left) != want {
					t.Errorf("there is %v, %v", left, err)
				}
			})
		}
	}
	if _, err := os.Stat(home + "/thesis"); err != nil {
		t.Error(err)
	}
}

// victim is a folder that looks as our workshop does, and is somebody else's.
func victim(t *testing.T) (home string, whole func()) {
	t.Helper()
	home = t.TempDir()
	lay(t, home, map[string]string{mark: markText, "directory/thesis": "mine", "old": "mine"})
	before := listed(t, home)
	return home, func() {
		t.Helper()
		if after := listed(t, home); !slices.Equal(before, after) {
			t.Errorf("there is %v, there was %v", after, before)
		}
	}
}

// TestASwappedWorkshopIsNotFollowed: whose directory the parent is moves our folder
// away, and puts a symlink to another's in its place.
func TestASwappedWorkshopIsNotFollowed(t *testing.T) {
	for what, there := range map[string]bool{"a new directory": false, "in the place of one": true} {
		t.Run(what, func(t *testing.T) {
			home, whole := victim(t)
			p := at(t)
			top := filepath.Dir(p.Path)
			if there {
				lay(t, top, map[string]string{"d/old": "old"})
			}
			if err := p.Begin(); err != nil {
				t.Fatal(err)
			}
			err := p.Replace(func(next *durable.Dir) error {
				return errors.Join(os.WriteFile(next.Name()+"/new", nil, 0o600),
					os.Rename(top+"/.d.next", top+"/.gone"), os.Symlink(home, top+"/.d.next"))
			})
			if err == nil {
				t.Error("nothing is said of it")
			}
			whole()
			if got := listed(t, p.Path); !slices.Equal(got, []string{"/new"}) {
				t.Errorf("there is %v", got)
			}
			if got := listed(t, top+"/.gone"); len(got) != 0 {
				t.Errorf("our own folder holds %v", got)
			}
		})
	}
}

// TestASwappedDirectoryIsNotFollowed: the same, with one that is looked through, or
// removed, at the instant before it is opened.
func TestASwappedDirectoryIsNotFollowed(t *testing.T) {
	for _, where := range []string{"d/sub", ".d.next/directory", ".d.next/directory/sub"} {
		swaps := 1
		for n := 1; n <= swaps; n++ { // the n-th time that it is opened
			home, whole := victim(t)
			p := at(t)
			top := filepath.Dir(p.Path)
			lay(t, top, map[string]string{"d/sub/old": "old", ".d.next/" + mark: markText, ".d.next/directory/sub/old": "x"})
			times := 0
			meanwhile = func(path string) {
				if path != filepath.Join(top, where) {
					return
				}
				if times++; times == n {
					if err := errors.Join(os.Rename(path, top+"/.gone"), os.Symlink(home, path)); err != nil {
						t.Fatal(err)
					}
				}
			}
			err := replace(p)
			meanwhile = func(string) {}
			whole()
			if err == nil && times >= n {
				t.Errorf("%s, time %d: nothing is said of it", where, n)
			}
			if times >= n {
				swaps++
			}
		}
		if swaps < 3 {
			t.Errorf("%s was swapped %d times: this tests nothing", where, swaps-1)
		}
	}
}
