package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

func mustPublish(t testing.TB, dir, to string, o Options) Outcome {
	t.Helper()
	out, err := Publish(t.Context(), dir, to, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPublishedPackagesAreLinked(t *testing.T) {
	p := newPublisher(t)
	src, top := t.TempDir(), t.TempDir()
	dir, to := top+"/repo", top+"/www/x86_64"
	a := p.pack(t, src, "a", "1-1", "any", "")
	mustAdd(t, dir, p.options(), a)
	if out := mustPublish(t, dir, to, p.options()); len(out.Added) != 1 {
		t.Errorf("%+v", out)
	}
	first, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, to} {
		if fi, err := os.Stat(filepath.Join(d, filepath.Base(a))); err != nil || !os.SameFile(first, fi) {
			t.Errorf("in %s it is another file: %v", d, err)
		}
	}
	// What others may write to is copied, readable by a web server.
	b := p.pack(t, src, "b", "1-1", "any", "")
	if err := os.Chmod(b, 0o620); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, dir, p.options(), b)
	if fi, err := os.Stat(filepath.Join(dir, filepath.Base(b))); err != nil || fi.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", fi, err)
	}
	if _, err := Remove(t.Context(), dir, []string{"a"}, p.options()); err != nil {
		t.Fatal(err)
	}
	if out := mustPublish(t, dir, to, p.options()); len(out.Added) != 1 || len(out.Dropped) != 1 {
		t.Errorf("%+v", out)
	}
	if got := names(t, to); got != "b-1-1-any" {
		t.Errorf("published: %s", got)
	}
}

func TestPublishRefuses(t *testing.T) {
	p := newPublisher(t)
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir, to string)
		want  string
	}{
		"a directory of something else": {func(t *testing.T, _, to string) { put(t, to+"/index.html", nil) }, "does not belong into a repository"},
		"a tampered package": {func(t *testing.T, dir, _ string) {
			f := dir + "/a-1-1-any.pkg.tar.zst"
			b := get(t, f)
			b[len(b)-1] ^= 1
			put(t, f, b)
		}, "signature"},
		"a signature of another": {func(t *testing.T, dir, _ string) {
			p.sign(t, dir+"/nox-mesh.db")
			b := get(t, dir+"/nox-mesh.db.sig")
			put(t, dir+"/a-1-1-any.pkg.tar.zst.sig", b)
		}, "signature"},
		"no repository": {func(t *testing.T, dir, _ string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}, "there is no repository"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, to := t.TempDir()+"/repo", t.TempDir()
			mustAdd(t, dir, p.options(), p.pack(t, t.TempDir(), "a", "1-1", "any", ""))
			c.spoil(t, dir, to)
			if _, err := Publish(t.Context(), dir, to, p.options()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, err := os.Stat(to + "/nox-mesh.db"); err == nil {
				t.Error("it was published")
			}
		})
	}
}

func TestPublishToItselfIsRefused(t *testing.T) {
	p := newPublisher(t)
	dir := t.TempDir() + "/repo"
	mustAdd(t, dir, p.options(), p.pack(t, t.TempDir(), "a", "1-1", "any", ""))
	link := t.TempDir() + "/link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Publish(t.Context(), dir, link, p.options()); err == nil {
		t.Error("no error")
	}
}

// TestPublishThroughADanglingSymlinkIsRefused: it is somebody's word on where the
// directory is, and would be gone.
func TestPublishThroughADanglingSymlinkIsRefused(t *testing.T) {
	p := newPublisher(t)
	top := t.TempDir()
	a := p.pack(t, t.TempDir(), "a", "1-1", "any", "")
	mustAdd(t, top+"/repo", p.options(), a)
	if err := os.Symlink("nowhere", top+"/out"); err != nil {
		t.Fatal(err)
	}
	_, published := Publish(t.Context(), top+"/repo", top+"/out", p.options())
	_, added := Add(t.Context(), top+"/out", []string{a}, p.options())
	for _, err := range []error{published, added} {
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "is a symlink") || fault.RemedyOf(err) == "" {
			t.Errorf("%v", err)
		}
	}
	if to, err := os.Readlink(top + "/out"); to != "nowhere" {
		t.Errorf("%q, %v", to, err)
	}
	if got := names(t, top); got != "out repo" {
		t.Errorf("there is %s", got)
	}
}

// TestADatabaseIsInTheDirectory: by a symlink that repo-add leaves, and no other.
func TestADatabaseIsInTheDirectory(t *testing.T) {
	p := newPublisher(t)
	top, home := t.TempDir(), t.TempDir()
	mustAdd(t, top+"/repo", p.options(), p.pack(t, t.TempDir(), "a", "1-1", "any", ""))
	link := func(to string) {
		t.Helper()
		if err := errors.Join(os.Remove(top+"/repo/"+dbName), os.Symlink(to, top+"/repo/"+dbName)); err != nil {
			t.Fatal(err)
		}
	}
	link(dbName + longSuffix)
	mustPublish(t, top+"/repo", top+"/www", p.options())
	put(t, home+"/db", get(t, top+"/repo/"+dbName))
	link(home + "/db")
	if _, err := Publish(t.Context(), top+"/repo", top+"/www", p.options()); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "leads out") {
		t.Errorf("%v", err)
	}
}

// TestASwappedFolderIsNotFilled: whose directory the parent is puts a symlink to
// another's in the place of the folder where the new one is filled.
func TestASwappedFolderIsNotFilled(t *testing.T) {
	p := newPublisher(t)
	top, victim := t.TempDir(), t.TempDir()
	mustAdd(t, top+"/repo", p.options(), p.pack(t, t.TempDir(), "a", "1-1", "any", ""))
	put(t, victim+"/MESH-RELEASE", []byte("theirs"))
	if err := os.MkdirAll(victim+"/directory", 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, victim+"/directory/thesis", []byte("theirs"))
	to, err := place.Open(top+"/out", true)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := to.Begin(); err != nil {
		t.Fatal(err)
	}
	err = to.Replace(func(next *durable.Dir) error {
		if err := errors.Join(os.Rename(top+"/.out.next", top+"/.gone"), os.Symlink(victim, top+"/.out.next")); err != nil {
			t.Fatal(err)
		}
		return write(next, "nox-mesh.db", strings.NewReader("new"))
	})
	if err == nil {
		t.Error("nothing is said of it")
	}
	if got := names(t, victim+"/directory") + " " + names(t, victim); got != "thesis MESH-RELEASE directory" {
		t.Errorf("there is %s", got)
	}
	if got := get(t, top+"/out/nox-mesh.db"); string(got) != "new" {
		t.Errorf("it holds %q", got)
	}
}

func TestAStrangersFolderIsLeft(t *testing.T) {
	p := newPublisher(t)
	top := t.TempDir()
	put(t, filepath.Join(top, "other"), nil)
	if err := os.MkdirAll(top+"/.repo.next", 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, top+"/.repo.next/half", []byte("somebody's"))
	_, err := Add(t.Context(), top+"/repo", []string{p.pack(t, t.TempDir(), "a", "1-1", "any", "")}, p.options())
	if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "mesh-release did not make it") {
		t.Errorf("%v", err)
	}
	if got := names(t, top); got != ".repo.next other" {
		t.Errorf("there is %s", got)
	}
	if got := get(t, top+"/.repo.next/half"); string(got) != "somebody's" {
		t.Errorf("it holds %q", got)
	}
}

// What a kill left is a folder with our mark; it is told by that.
func TestWhatAKillLeftIsSweptAway(t *testing.T) {
	p := newPublisher(t)
	top := t.TempDir()
	put(t, filepath.Join(top, "other"), nil)
	dir := top + "/repo"
	left, err := place.Open(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	if err := left.Begin(); err != nil {
		t.Fatal(err)
	}
	// What is there in the middle of the work is put there again after its end.
	aside := t.TempDir()
	killed := errors.New("killed")
	err = left.Replace(func(next *durable.Dir) error {
		put(t, filepath.Join(next.Name(), "half"), nil)
		return errors.Join(killed, os.CopyFS(aside, os.DirFS(top+"/.repo.next")))
	})
	if !errors.Is(err, killed) {
		t.Fatal(err)
	}
	if err := os.CopyFS(top+"/.repo.next", os.DirFS(aside)); err != nil {
		t.Fatal(err)
	}
	if got := names(t, top); got != ".repo.next other" {
		t.Fatalf("a kill left %s, so this tests nothing", got)
	}
	mustAdd(t, dir, p.options(), p.pack(t, t.TempDir(), "a", "1-1", "any", ""))
	if got := names(t, top); got != "other repo" {
		t.Errorf("there is %s", got)
	}
}

// TestAReaderSeesPairs publishes 50 times while readers read database and
// signature through one opened directory, and others write to the repository.
func TestAReaderSeesPairs(t *testing.T) {
	p := newPublisher(t)
	src, top := t.TempDir(), t.TempDir()
	dir, to := top+"/repo", top+"/www"
	mustAdd(t, dir, p.options(), p.pack(t, src, "a", "1-1", "any", ""))
	mustPublish(t, dir, to, p.options())
	done := make(chan struct{})
	var all sync.WaitGroup
	pairs := 0
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			ok, err := pair(p, to)
			if err != nil {
				t.Error(err)
				return
			}
			if ok {
				pairs++
			}
		}
	})
	for n := range 50 {
		v := fmt.Sprintf("%d-1", n+2)
		mustAdd(t, dir, p.options(), p.pack(t, src, "a", v, "any", v))
		mustPublish(t, dir, to, p.options())
	}
	close(done)
	all.Wait()
	if pairs < 50 {
		t.Errorf("the reader saw only %d pairs", pairs)
	}
}

// pair reads both databases of a directory, and reports false when it was taken
// away meanwhile.
func pair(p publisher, path string) (bool, error) {
	d, err := durable.OpenDir(path)
	if err != nil {
		return false, err // there is always a directory
	}
	defer d.Close()
	for _, name := range []string{dbName, filesName, dbName + longSuffix} {
		var b [2][]byte
		for i, suffix := range []string{"", sigSuffix} {
			f, err := openIn(d, name+suffix, false)
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			b[i], err = readAll(f, maxDatabase)
			f.Close()
			if err != nil {
				return false, err
			}
		}
		if err := p.Verify(bytes.NewReader(b[0]), b[1]); err != nil {
			return false, fmt.Errorf("%s and its signature are no pair: %w", name, err)
		}
	}
	return true, nil
}

func TestManyAtOnceLoseNothing(t *testing.T) {
	p := newPublisher(t)
	src, dir := t.TempDir(), t.TempDir()+"/repo"
	var all sync.WaitGroup
	for n := range 8 {
		a := p.pack(t, src, fmt.Sprintf("p%d", n), "1-1", "any", "")
		all.Go(func() {
			if _, err := Add(t.Context(), dir, []string{a}, p.options()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := listed(t, dir, p.options()); strings.Count(got, ",") != 7 {
		t.Errorf("listed %s", got)
	}
}

func TestWaitingForTheLockCanBeGivenUp(t *testing.T) {
	p := newPublisher(t)
	dir := t.TempDir() + "/repo"
	held, err := place.Open(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := place.Lock(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := p.pack(t, t.TempDir(), "a", "1-1", "any", "")
	if _, err := Add(ctx, dir, []string{a}, p.options()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
