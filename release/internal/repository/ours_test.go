package repository

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestPublishLeavesWhatIsNotOurs: a target that holds somebody's packages, or has
// anything in the place of our files, is refused and left to the byte.
func TestPublishLeavesWhatIsNotOurs(t *testing.T) {
	p := newPublisher(t)
	stranger := newPublisher(t)
	copied := func(t *testing.T, from, to string) {
		t.Helper()
		for _, name := range []string{from, from + ".sig"} {
			put(t, filepath.Join(to, filepath.Base(name)), get(t, name))
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, to string)
		says  string
	}{
		"packages and no database": {func(t *testing.T, to string) {
			copied(t, stranger.pack(t, t.TempDir(), "theirs", "1-1", "any", ""), to)
		}, "it is not empty"},
		"packages of ours and no database": {func(t *testing.T, to string) {
			copied(t, p.pack(t, t.TempDir(), "kept", "1-1", "any", ""), to)
		}, "it is not empty"},
		"a junk database": {func(t *testing.T, to string) {
			copied(t, stranger.pack(t, t.TempDir(), "theirs", "1-1", "any", ""), to)
			put(t, to+"/nox-mesh.db", []byte("junk"))
		}, `there is no "nox-mesh.files"`},
		"nothing but an old database": {func(t *testing.T, to string) { put(t, to+"/nox-mesh.db.tar.zst.old", []byte("junk")) }, "it is not empty"},
		"a repository of another": {func(t *testing.T, to string) {
			mustAdd(t, to, stranger.options(), stranger.pack(t, t.TempDir(), "theirs", "1-1", "any", ""))
		}, `database "nox-mesh.files"`},
		"a package that was not added": {func(t *testing.T, to string) {
			mustAdd(t, to, p.options(), p.pack(t, t.TempDir(), "b", "1-1", "any", ""))
			copied(t, stranger.pack(t, t.TempDir(), "theirs", "1-1", "any", ""), to)
		}, "was not added"},
		"an older package of another": {func(t *testing.T, to string) {
			mustAdd(t, to, p.options(), p.pack(t, t.TempDir(), "b", "2-1", "any", ""))
			copied(t, stranger.pack(t, t.TempDir(), "b", "1-1", "any", ""), to)
		}, `package "b-1-1-any.pkg.tar.zst"`},
		"another signature": {func(t *testing.T, to string) {
			mustAdd(t, to, p.options(), p.pack(t, t.TempDir(), "b", "1-1", "any", ""))
			remake(t, to+"/b-1-1-any.pkg.tar.zst.sig", "theirs")
		}, "its signature is not what the database says"},
		"a long name of something else": {func(t *testing.T, to string) {
			mustAdd(t, to, p.options(), p.pack(t, t.TempDir(), "b", "1-1", "any", ""))
			remake(t, to+"/nox-mesh.db.tar.zst", "theirs")
		}, `"nox-mesh.db.tar.zst" is not the same`},
		"a directory in the place of a signature": {func(t *testing.T, to string) {
			put(t, to+"/a-1-1-any.pkg.tar.zst", []byte("theirs"))
			folder(t, to+"/a-1-1-any.pkg.tar.zst.sig")
		}, "is not a regular file"},
		"a directory in the place of a database": {func(t *testing.T, to string) { folder(t, to+"/nox-mesh.db") }, "is not a regular file"},
		"a directory in the place of an old one": {func(t *testing.T, to string) {
			mustAdd(t, to, p.options(), p.pack(t, t.TempDir(), "b", "1-1", "any", ""))
			folder(t, to+"/nox-mesh.db.old")
		}, "is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir, to := top+"/repo", top+"/cache"
			mustAdd(t, dir, p.options(), p.pack(t, t.TempDir(), "a", "1-1", "any", ""))
			if err := os.Mkdir(to, 0o755); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, to)
			before := allOf(t, to)
			for _, dry := range []bool{true, false} {
				o := p.options()
				o.DryRun = dry
				_, err := Publish(t.Context(), dir, to, o)
				if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), c.says) || fault.RemedyOf(err) == "" {
					t.Errorf("dry %v: %v, want %q", dry, err, c.says)
				}
			}
			if after := allOf(t, to); after != before {
				t.Errorf("there is %s\nthere was %s", after, before)
			}
		})
	}
}

// remake puts another file in the place of one that has several names.
func remake(t *testing.T, path, text string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	put(t, path, []byte(text))
}

// folder makes one with somebody's file in it.
func folder(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, path+"/thesis", []byte("mine"))
}

// allOf is every name below dir with what it holds.
func allOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		all.WriteString(path + ": " + string(get(t, path)) + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestPublishIntoItself: a target within the source makes it no repository, and the
// other way round the source would be removed.
func TestPublishIntoItself(t *testing.T) {
	p := newPublisher(t)
	dir := t.TempDir() + "/www/repo"
	mustAdd(t, dir, p.options(), p.pack(t, t.TempDir(), "a", "1-1", "any", ""))
	link := t.TempDir() + "/link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{dir + "/sub", dir + "/sub/deeper", link + "/sub", filepath.Dir(dir)} {
		if _, err := Publish(t.Context(), dir, to, p.options()); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "within the other") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if got := listed(t, dir, p.options()); got != "a 1-1" {
		t.Errorf("it lists %s", got)
	}
	if _, err := os.Lstat(dir + "/sub"); err == nil {
		t.Error("something was made in it")
	}
}
