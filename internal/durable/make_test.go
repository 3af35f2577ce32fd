package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// swap lets somebody put another thing in the place of what is being made.
func swap(t *testing.T, dir, secret string) {
	t.Helper()
	meanwhile = func(temp string) {
		if err := os.Rename(filepath.Join(dir, temp), filepath.Join(dir, "aside")); err != nil {
			t.Error(err)
		}
		if err := os.Rename(filepath.Join(dir, secret), filepath.Join(dir, temp)); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { meanwhile = func(string) {} })
}

// The directory is another user's, and what is root's in it is swapped with
// what is just made: its owner and mode must stay.
func TestASwappedThingKeepsOwnerAndMode(t *testing.T) {
	give := Attr{Mode: 0o755, UID: Keep, GID: Keep}
	if os.Geteuid() == 0 {
		give.UID, give.GID = 4711, 4711
	}
	things := map[string]func(p string) error{
		"file": func(p string) error { return os.WriteFile(p, []byte("secret"), 0o600) },
		"directory": func(p string) error {
			return errors.Join(os.Mkdir(p, 0o700), os.WriteFile(filepath.Join(p, "inside"), nil, 0o600))
		},
		"symlink": func(p string) error { return os.Symlink("/somewhere/else", p) },
		"fifo":    func(p string) error { return syscall.Mkfifo(p, 0o600) },
	}
	for what, prepare := range things {
		for name, work := range map[string]func(*Dir) error{
			"Mkdir": func(d *Dir) error { return d.Mkdir("new", give) },
			"Symlink": func(d *Dir) error {
				return d.Symlink("new", "target", Attr{Mode: 0o777, UID: max(give.UID, os.Geteuid()), GID: max(give.GID, os.Getegid())})
			},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				dir := t.TempDir()
				secret := filepath.Join(dir, "secret")
				if err := prepare(secret); err != nil {
					t.Fatal(err)
				}
				before, err := os.Lstat(secret)
				if err != nil {
					t.Fatal(err)
				}
				held, err := syscall.Open(secret, 0x200000 /* O_PATH */ |syscall.O_NOFOLLOW, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer syscall.Close(held)
				swap(t, dir, "secret")
				d, err := OpenDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				if err := work(d); !errors.Is(err, errSwapped) {
					t.Errorf("error: %v", err)
				}
				var after syscall.Stat_t
				if err := syscall.Fstat(held, &after); err != nil {
					t.Fatal(err)
				}
				was := before.Sys().(*syscall.Stat_t)
				if after.Uid != was.Uid || after.Gid != was.Gid || after.Mode != was.Mode {
					t.Errorf("it is now %o of %d:%d, was %o of %d:%d", after.Mode, after.Uid, after.Gid, was.Mode, was.Uid, was.Gid)
				}
				if _, err := os.Lstat(filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("it was put in place: %v", err)
				}
			})
		}
	}
}

func TestMkdirLeavesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "there"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, name := range []string{"there", "link"} {
		if err := d.Mkdir(name, Perm(0o755)); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := names(t, dir); got != "link there" {
		t.Errorf("left in the directory: %s", got)
	}
	if fi, _ := os.Stat(filepath.Join(dir, "there")); fi.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", fi.Mode())
	}
}

// A crash may leave the directory under its temporary name.
func TestF09SweepAndWhoComesNextTakeAwayAHalfMadeDirectory(t *testing.T) {
	dir := t.TempDir()
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for what, work := range map[string]func() error{
		"Sweep":   func() error { return d.Sweep("it") },
		"Mkdir":   func() error { return errors.Join(d.Mkdir("it", Perm(0o755)), d.Rmdir("it")) },
		"Symlink": func() error { return errors.Join(d.Symlink("it", "x", Perm(0o777)), d.Remove("it")) },
		"Create": func() error {
			p, err := d.Create("it", Perm(0o600))
			if err == nil {
				p.Abort()
			}
			return err
		},
	} {
		if err := os.Mkdir(filepath.Join(dir, TempName("it")), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := work(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got := names(t, dir); got != "" {
			t.Errorf("%s left %s", what, got)
		}
	}
}

func TestManyMayMakeOneDirectoryAtOnce(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if err := MkdirAll(filepath.Join(dir, "a/b/c"), 0o755); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := names(t, dir) + " " + names(t, filepath.Join(dir, "a")); got != "a b" {
		t.Errorf("left: %s", got)
	}
}
