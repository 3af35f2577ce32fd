package bundle

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestWhatComesMeanwhileIsLeft: somebody is at the name while the bundle is written,
// or at the instant at which it takes its place.
func TestWhatComesMeanwhileIsLeft(t *testing.T) {
	write := func(text string) func(string) error {
		return func(p string) error { return os.WriteFile(p, []byte(text), 0o600) }
	}
	instead := func(p string) error {
		return errors.Join(os.WriteFile(p+"2", []byte("mine"), 0o600), os.Rename(p+"2", p))
	}
	for name, c := range map[string]struct {
		there  bool
		meddle func(path string) error
		want   string // what is there afterwards
	}{
		"a file":        {false, write("mine"), "mine"},
		"an empty file": {false, write(""), ""},
		"a symlink":     {false, func(p string) error { return errors.Join(write("mine")(p+"2"), os.Symlink(p+"2", p)) }, "mine"},
		"another text":  {true, write("mine"), "mine"},
		"another file":  {true, instead, "mine"},
		"a symlink in its place": {true, func(p string) error {
			return errors.Join(os.Rename(p, p+"2"), write("mine")(p+"3"), os.Symlink(p+"3", p))
		}, "mine"},
		"a file where it was moved to": {true, func(p string) error { return os.Rename(p, p+"2") }, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			for when, begin := range map[string]func(path string) error{
				"while it is written": func(path string) error {
					d, err := openDestination(path)
					if err != nil {
						return err
					}
					defer d.close()
					if err := c.meddle(path); err != nil {
						t.Fatal(err)
					}
					if _, err := d.Write([]byte("new")); err != nil {
						return err
					}
					return d.finish()
				},
				"as it takes its place": func(path string) error {
					real, first := rename, true
					defer func() { rename = real }()
					rename = func(dir int, from, to string, flags uint) error {
						if first {
							if err := c.meddle(path); err != nil {
								t.Fatal(err)
							}
						}
						first = false
						return real(dir, from, to, flags)
					}
					return putThere(path, "new")
				},
			} {
				path := filepath.Join(t.TempDir(), "b.tar")
				if c.there {
					aBundleFile(t, path, 0o600)
				}
				err := begin(path)
				if fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "somebody changed") || fault.RemedyOf(err) == "" {
					t.Errorf("%s: %v", when, err)
				}
				b, err := os.ReadFile(path)
				if errors.Is(err, os.ErrNotExist) {
					b, err = []byte("none"), nil
				}
				if err != nil || string(b) != c.want {
					t.Errorf("%s: there is %.40q, %v", when, b, err)
				}
				if left, err := filepath.Glob(filepath.Dir(path) + "/.nox-*"); err != nil || len(left) != 0 {
					t.Errorf("%s: left beside it: %v, %v", when, left, err)
				}
			}
		})
	}
}

// TestBuildLeavesWhatComesMeanwhile, whatever comes while the content is read; also a
// mode that somebody gave.
func TestBuildLeavesWhatComesMeanwhile(t *testing.T) {
	k := newKey(t)
	path := filepath.Join(t.TempDir(), "b.tar")
	meddle := func() error { return os.WriteFile(path, []byte("mine"), 0o600) }
	spec := specOf(100, k)
	open := spec.Payload[0].Open
	spec.Payload[0].Open = func() (io.ReadCloser, error) {
		if err := meddle(); err != nil {
			t.Fatal(err)
		}
		return open()
	}
	_, err := Build(ctx, path, spec)
	remedied(t, err, "run it again")
	if b, err := os.ReadFile(path); err != nil || string(b) != "mine" {
		t.Errorf("%.40q, %v", b, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	meddle = func() error { return nil }
	must[*Info](t)(Build(ctx, path, spec))
	meddle = func() error { return os.Chmod(path, 0o600) }
	_, err = Build(ctx, path, spec)
	remedied(t, err, "run it again")
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
}

// TestAFileSystemThatExchangesNothing is written to all the same.
func TestAFileSystemThatExchangesNothing(t *testing.T) {
	real := rename
	defer func() { rename = real }()
	rename = func(int, string, string, uint) error { return unix.EINVAL }
	path := filepath.Join(t.TempDir(), "b.tar")
	for range 2 {
		must[*Info](t)(Build(ctx, path, specOf(100, newKey(t))))
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestASwappedFolderIsNotFollowed: its owner puts a link to somebody else's in its
// place once it was looked at.
func TestASwappedFolderIsNotFollowed(t *testing.T) {
	top := t.TempDir()
	mine, gone, victim := top+"/mine", top+"/gone", top+"/victim"
	for _, dir := range []string{mine, victim} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		aBundleFile(t, dir+"/b.tar", 0o600)
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chown(mine, 1234, 1234), os.Chown(mine+"/b.tar", 1234, 1234)); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(victim + "/b.tar")
	if err != nil {
		t.Fatal(err)
	}
	meanwhile = func() {
		if err := errors.Join(os.Rename(mine, gone), os.Symlink("victim", mine)); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { meanwhile = func() {} }()
	must[*Info](t)(Build(ctx, mine+"/b.tar", specOf(100, newKey(t))))
	after, err := os.Stat(victim + "/b.tar")
	if err != nil || !os.SameFile(before, after) || after.Sys().(*syscall.Stat_t).Uid != before.Sys().(*syscall.Stat_t).Uid {
		t.Errorf("another one is there: %v, %v", after, err)
	}
	if left, err := os.ReadDir(victim); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if fi, err := os.Stat(gone + "/b.tar"); err != nil || fi.Size() <= blockSize {
		t.Errorf("it is not where its folder went: %v, %v", fi, err)
	}
}

// TestWhatItIsMadeOfIsNotReplaced, by whatever name it is called.
func TestWhatItIsMadeOfIsNotReplaced(t *testing.T) {
	top := t.TempDir()
	in := top + "/in.tar"
	aBundleFile(t, in, 0o600)
	if err := errors.Join(os.Symlink("in.tar", top+"/symlink"), os.Link(in, top+"/link")); err != nil {
		t.Fatal(err)
	}
	spec := specOf(100, newKey(t))
	spec.Inputs = []string{top + "/none", in}
	for _, out := range []string{"in.tar", "symlink", "link"} {
		_, err := Build(ctx, top+"/"+out, spec)
		if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "is what the bundle is made of") || fault.RemedyOf(err) == "" {
			t.Errorf("%s: %v", out, err)
		}
	}
	if fi, err := os.Stat(in); err != nil || fi.Size() != blockSize {
		t.Errorf("%v, %v", fi, err)
	}
	must[*Info](t)(Build(ctx, top+"/other", spec))
}

func TestABundleIsAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, out := range []string{"-", "/dev/stdout", "/dev/stderr"} {
		_, err := Build(ctx, out, specOf(100, newKey(t)))
		if fault.KindOf(err) != fault.Usage || !strings.Contains(fault.RemedyOf(err), "name of a file") {
			t.Errorf("%s: %v", out, err)
		}
	}
	must[*Info](t)(Build(ctx, "./-", specOf(100, newKey(t))))
}
