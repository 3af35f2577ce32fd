package bundle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// putThere writes text to path by way of a destination.
func putThere(path, text string) error {
	d, err := openDestination(path)
	if err != nil {
		return err
	}
	defer d.close()
	if _, err := d.Write([]byte(text)); err != nil {
		return err
	}
	return d.finish()
}

func aBundleFile(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	head := header(layoutName, int64(len(layoutBytes)))
	if err := os.WriteFile(path, head[:], mode); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNoBundleIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	in := func(n string) string { return filepath.Join(dir, n) }
	for name, lay := range map[string]func(string) error{
		"text":      func(p string) error { return os.WriteFile(p, []byte("a key"), 0o600) },
		"long text": func(p string) error { return os.WriteFile(p, make([]byte, 4096), 0o600) },
		"directory": func(p string) error { return os.Mkdir(p, 0o755) },
		"fifo":      func(p string) error { return unix.Mkfifo(p, 0o600) },
		"link":      func(p string) error { return os.Symlink("text", p) },
		"dangling":  func(p string) error { return os.Symlink("nowhere", p) },
		"loop":      func(p string) error { return os.Symlink("loop", p) },
	} {
		if err := lay(in(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"text", "long text", "directory", "directory/", "fifo", "link", "dangling", "loop", "new/"} {
		before, _ := os.Lstat(in(name))
		err := putThere(dir+"/"+name, "x")
		if err == nil {
			t.Errorf("%s: replaced", name)
		}
		if after, _ := os.Lstat(in(name)); (before == nil) != (after == nil) || before != nil && !os.SameFile(before, after) {
			t.Errorf("%s: another one is there", name)
		}
	}
	if err := putThere(in("text"), "x"); fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
}

func TestABundleIsReplacedWithItsRightsAndThroughALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "b.tar"), filepath.Join(dir, "current")
	aBundleFile(t, file, 0o600)
	if err := os.Symlink("b.tar", link); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(file, 1, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := putThere(link, "new"); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); to != "b.tar" {
		t.Errorf("the link is gone: %v", err)
	}
	fi, err := os.Stat(file)
	if err != nil || fi.Mode().Perm() != 0o600 || fi.Size() != 3 {
		t.Fatalf("%v, %v", fi, err)
	}
	if st := fi.Sys().(*syscall.Stat_t); os.Geteuid() == 0 && (st.Uid != 1 || st.Gid != 2) {
		t.Errorf("it belongs to %d:%d", st.Uid, st.Gid)
	}
	if err := putThere(filepath.Join(dir, "fresh"), "new"); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "empty"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := putThere(filepath.Join(dir, "empty"), "new"); err != nil {
		t.Error(err)
	}
}

func TestTwoDoNotWriteOneBundle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.tar")
	d, err := openDestination(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if err := putThere(path, "other"); fault.KindOf(err) != fault.Failed {
		t.Errorf("the second says %v", err)
	}
	if _, err := d.Write([]byte("mine")); err != nil {
		t.Fatal(err)
	}
	if err := d.finish(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
	// What a dead one left is nobody's.
	left := filepath.Join(filepath.Dir(path), durable.TempName("c.tar"))
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := putThere(filepath.Join(filepath.Dir(path), "c.tar"), "whole"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Error("half a file is left")
	}
}
