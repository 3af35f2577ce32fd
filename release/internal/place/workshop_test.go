package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// at is a place "d" in a folder of its own, locked.
func at(t *testing.T) *Place {
	t.Helper()
	p, err := Open(filepath.Join(t.TempDir(), "d"), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if err := Lock(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func replace(p *Place) error {
	if err := p.Begin(); err != nil {
		return err
	}
	return p.Replace(func(next *durable.Dir) error { return os.WriteFile(next.Name()+"/new", nil, 0o600) })
}

// lay makes files (text) and folders (no text, and a slash at the end) below dir.
func lay(t *testing.T, dir string, all map[string]string) {
	t.Helper()
	for name, text := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.Mkdir(path, 0o755)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
}

// listed returns all that is below dir.
func listed(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			all = append(all, path[len(dir):])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAStrangersFolderIsLeft: one that only has the name of ours is not removed,
// whatever is in it, and a person is told what to do.
func TestAStrangersFolderIsLeft(t *testing.T) {
	for what, all := range map[string]map[string]string{
		"a file in its place":    {".d.next": "thesis"},
		"a file in it":           {".d.next/thesis": "mine"},
		"a folder in it":         {".d.next/mine/": ""},
		"a directory, no mark":   {".d.next/directory/thesis": "mine"},
		"another's mark":         {".d.next/MESH-RELEASE": "mine", ".d.next/directory/thesis": "mine"},
		"a mark and a file more": {".d.next/MESH-RELEASE": markText, ".d.next/thesis": "mine"},
	} {
		t.Run(what, func(t *testing.T) {
			p := at(t)
			top := filepath.Dir(p.Path)
			lay(t, top, all)
			before := listed(t, top)
			for _, err := range []error{p.Check(), replace(p)} {
				if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "mesh-release did not make it") || fault.RemedyOf(err) == "" {
					t.Errorf("%v", err)
				}
			}
			if after := listed(t, top); len(after) != len(before) {
				t.Errorf("there is %v, there was %v", after, before)
			}
		})
	}
	p := at(t)
	home := t.TempDir()
	lay(t, home, map[string]string{"MESH-RELEASE": markText, "directory/thesis": "mine"})
	if err := os.Symlink(home, filepath.Join(filepath.Dir(p.Path), ".d.next")); err != nil {
		t.Fatal(err)
	}
	if err := replace(p); fault.KindOf(err) != fault.Refused {
		t.Errorf("through a symlink: %v", err)
	}
	if _, err := os.Stat(home + "/directory/thesis"); err != nil {
		t.Error(err)
	}
}

// TestWhatAKillLeftIsSwept at whatever instant it came.
func TestWhatAKillLeftIsSwept(t *testing.T) {
	for what, all := range map[string]map[string]string{
		"before the mark":          {".d.next/": ""},
		"while it was marked":      {".d.next/" + durable.TempName(mark): "mesh-rel"},
		"after the mark":           {".d.next/" + mark: markText},
		"while the folder is made": {".d.next/" + mark: markText, ".d.next/" + durable.TempName(fresh) + "/": ""},
		"while it is filled":       {".d.next/" + mark: markText, ".d.next/directory/arch/half": "x"},
		"after the exchange":       {".d.next/" + mark: markText, ".d.next/directory/old": "x", "d/new": ""},
	} {
		t.Run(what, func(t *testing.T) {
			p := at(t)
			lay(t, filepath.Dir(p.Path), all)
			if err := p.Check(); err != nil {
				t.Error(err)
			}
			if err := replace(p); err != nil {
				t.Error(err)
			}
			if left := listed(t, filepath.Dir(p.Path)); !slices.Equal(left, []string{"/d", "/d/new"}) {
				t.Errorf("there is %v", left)
			}
		})
	}
}

// TestALockOnADirectoryThatIsGone is none: whoever waited looks again.
func TestALockOnADirectoryThatIsGone(t *testing.T) {
	for what, meanwhile := range map[string]func(dir string) error{
		"removed":  os.RemoveAll,
		"replaced": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)) },
		"moved":    func(dir string) error { return os.Rename(dir, dir+"2") },
	} {
		p, err := Open(filepath.Join(t.TempDir(), "parent", "d"), true)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := meanwhile(filepath.Dir(p.Path)); err != nil {
			t.Fatal(err)
		}
		if err := Lock(t.Context(), p); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestTheMarkIsThereAsLongAsAnythingElse looks into the workshop while it is used.
func TestTheMarkIsThereAsLongAsAnythingElse(t *testing.T) {
	p := at(t)
	lay(t, filepath.Dir(p.Path), map[string]string{"d/old": ""})
	if err := p.Begin(); err != nil {
		t.Fatal(err)
	}
	var saw []string
	err := p.Replace(func(*durable.Dir) error {
		entries, err := os.ReadDir(filepath.Join(filepath.Dir(p.Path), ".d.next"))
		for _, e := range entries {
			saw = append(saw, e.Name())
		}
		return err
	})
	if err != nil || !slices.Equal(saw, []string{"MESH-RELEASE", "directory"}) {
		t.Errorf("%q, %v", saw, err)
	}
}
