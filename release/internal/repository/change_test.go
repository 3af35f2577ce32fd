package repository

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func mustAdd(t testing.TB, dir string, o Options, packages ...string) Outcome {
	t.Helper()
	out, err := Add(t.Context(), dir, packages, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func listed(t testing.TB, dir string, o Options) string {
	t.Helper()
	all, err := List(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range all {
		if p.Listed {
			out = append(out, p.Name+" "+p.Version)
		}
	}
	return strings.Join(out, ", ")
}

func TestTheNewestIsListedAndTheNewestTwoAreKept(t *testing.T) {
	p := newPublisher(t)
	src, dir := t.TempDir(), filepath.Join(t.TempDir(), "a/b/repo")
	// In an order that is neither that of time nor that of the alphabet.
	for _, v := range []string{"9-1", "10-1", "10rc1-1", "1:2-1"} {
		mustAdd(t, dir, p.options(), p.pack(t, src, "web", v, "any", v))
	}
	mustAdd(t, dir, p.options(), p.pack(t, src, "mail", "1-1", "x86_64", ""))
	if got, want := listed(t, dir, p.options()), "mail 1-1, web 1:2-1"; got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
	if got, want := names(t, dir), "mail-1-1-x86_64 web-10-1-any web-1:2-1-any"; got != want {
		t.Errorf("there is %s, want %s", got, want)
	}
	o := p.options()
	o.Keep = 1
	out := mustAdd(t, dir, o, p.pack(t, src, "mail", "2-1", "x86_64", ""))
	if got := strings.Join(out.Dropped, " "); got != "mail-1-1-x86_64.pkg.tar.zst web-10-1-any.pkg.tar.zst" {
		t.Errorf("dropped %s", got)
	}
}

func TestRemoveTakesAllVersions(t *testing.T) {
	p := newPublisher(t)
	src, dir := t.TempDir(), filepath.Join(t.TempDir(), "repo")
	mustAdd(t, dir, p.options(), p.pack(t, src, "web", "1-1", "any", ""), p.pack(t, src, "web", "2-1", "any", ""), p.pack(t, src, "web-extra", "1-1", "any", ""))
	if _, err := Remove(t.Context(), dir, []string{"we"}, p.options()); fault.KindOf(err) != fault.Failed {
		t.Errorf("removing what is not there: %v", err)
	}
	out, err := Remove(t.Context(), dir, []string{"web"}, p.options())
	if err != nil || len(out.Dropped) != 2 || out.Listed != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if got := names(t, dir); got != "web-extra-1-1-any" {
		t.Errorf("there is %s", got)
	}
	if _, err := Remove(t.Context(), dir, []string{"web-extra"}, p.options()); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, dir, p.options()); got != "" {
		t.Errorf("listed %s in an empty repository", got)
	}
}

func TestEqualSetsAreEqualBytes(t *testing.T) {
	p := newPublisher(t)
	src, one, two := t.TempDir(), filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	a, b, c := p.pack(t, src, "a", "1-1", "any", ""), p.pack(t, src, "b", "1-1", "any", ""), p.pack(t, src, "a", "2-1", "any", "")
	mustAdd(t, one, p.options(), a, b, c)
	mustAdd(t, two, p.options(), c)
	mustAdd(t, two, p.options(), b)
	mustAdd(t, two, p.options(), a)
	for _, n := range []string{"nox-mesh.db", "nox-mesh.files", "nox-mesh.db.tar.zst"} {
		if !bytes.Equal(get(t, filepath.Join(one, n)), get(t, filepath.Join(two, n))) {
			t.Errorf("%s differs", n)
		}
	}
}

func TestAddingAgainChangesNothing(t *testing.T) {
	p := newPublisher(t)
	src, dir := t.TempDir(), filepath.Join(t.TempDir(), "repo")
	files := []string{p.pack(t, src, "a", "1-1", "any", ""), p.pack(t, src, "a", "2-1", "any", "")}
	mustAdd(t, dir, p.options(), files...)
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if out := mustAdd(t, dir, p.options(), files...); len(out.Added)+len(out.Dropped) != 0 {
		t.Errorf("%+v", out)
	}
	if after, err := os.Stat(dir); err != nil || !os.SameFile(before, after) {
		t.Errorf("the directory was replaced: %v", err)
	}
}

func TestPackagesThatLieInTheDirectoryCanBeAdded(t *testing.T) {
	p := newPublisher(t)
	dir := t.TempDir()
	a := p.pack(t, dir, "a", "1-1", "any", "")
	mustAdd(t, dir, p.options(), a)
	if got := listed(t, dir, p.options()); got != "a 1-1" {
		t.Errorf("listed %s", got)
	}
}

func TestANewSignatureOfTheSamePackageIsTaken(t *testing.T) {
	p := newPublisher(t)
	src, dir := t.TempDir(), filepath.Join(t.TempDir(), "repo")
	a := p.pack(t, src, "a", "1-1", "any", "")
	mustAdd(t, dir, p.options(), a)
	for first := get(t, a+".sig"); bytes.Equal(first, get(t, a+".sig")); { // until the next second
		p.sign(t, a)
	}
	if out := mustAdd(t, dir, p.options(), a); len(out.Added) != 1 {
		t.Errorf("%+v", out)
	}
	if !bytes.Equal(get(t, a+".sig"), get(t, filepath.Join(dir, filepath.Base(a)+".sig"))) {
		t.Error("the old signature is there")
	}
	if out, err := Publish(t.Context(), dir, filepath.Join(t.TempDir(), "to"), p.options()); err != nil || out.Listed != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestWhatIsNotRightIsRefused spoils one thing in a repository of a 2-1 (x86_64)
// or in the package that is added, and expects that nothing changes.
func TestWhatIsNotRightIsRefused(t *testing.T) {
	p, stranger := newPublisher(t), newPublisher(t)
	for name, c := range map[string]struct {
		spoil func(t *testing.T, src, dir string) string // returns what to add
		want  string
	}{
		"unsigned": {func(t *testing.T, src, _ string) string {
			f := p.pack(t, src, "b", "1-1", "any", "")
			os.Remove(f + ".sig")
			return f
		}, "it is not signed"},
		"signed by a stranger": {func(t *testing.T, src, _ string) string { return stranger.pack(t, src, "b", "1-1", "any", "") }, "signature"},
		"changed after signing": {func(t *testing.T, src, _ string) string {
			f := p.pack(t, src, "b", "1-1", "any", "")
			put(t, f, packageBytes(t, "b", "1-1", "any", "x"))
			return f
		}, "signature"},
		"another name in it": {func(t *testing.T, src, _ string) string {
			f := filepath.Join(src, "c-1-1-any.pkg.tar.zst")
			put(t, f, packageBytes(t, "b", "1-1", "any", ""))
			p.sign(t, f)
			return f
		}, `its content says that it is "b-1-1-any.pkg.tar.zst"`},
		"another version in it": {func(t *testing.T, src, _ string) string {
			f := filepath.Join(src, "b-1-2-any.pkg.tar.zst")
			put(t, f, packageBytes(t, "b", "1-1", "any", ""))
			p.sign(t, f)
			return f
		}, "its content says"},
		"no package": {func(t *testing.T, src, _ string) string {
			f := filepath.Join(src, "b-1-1-any.pkg.tar.zst")
			put(t, f, []byte("x"))
			p.sign(t, f)
			return f
		}, "cannot read package"},
		"other bytes":          {func(t *testing.T, src, _ string) string { return p.pack(t, src, "a", "2-1", "x86_64", "other") }, "already with other bytes"},
		"another architecture": {func(t *testing.T, src, _ string) string { return p.pack(t, src, "b", "1-1", "aarch64", "") }, `has packages for "x86_64"`},
		"the same version":     {func(t *testing.T, src, _ string) string { return p.pack(t, src, "a", "02-1", "x86_64", "") }, "of the same version"},
		"a tampered database": {func(t *testing.T, src, dir string) string {
			b := get(t, dir+"/nox-mesh.db")
			b[len(b)/2] ^= 1
			put(t, dir+"/nox-mesh.db", b)
			return p.pack(t, src, "b", "1-1", "any", "")
		}, `database "nox-mesh.db"`},
		"a stripped signature": {func(t *testing.T, src, dir string) string {
			os.Remove(dir + "/nox-mesh.db.sig")
			return p.pack(t, src, "b", "1-1", "any", "")
		}, `there is no "nox-mesh.db.sig"`},
		"no database for files": {func(t *testing.T, src, dir string) string {
			os.Remove(dir + "/nox-mesh.files")
			return p.pack(t, src, "b", "1-1", "any", "")
		}, `there is no "nox-mesh.files"`},
		"databases of two moments": {func(t *testing.T, src, dir string) string {
			files, sig := get(t, dir+"/nox-mesh.files"), get(t, dir+"/nox-mesh.files.sig")
			mustAdd(t, dir, p.options(), p.pack(t, src, "c", "1-1", "any", ""))
			put(t, dir+"/nox-mesh.files", files)
			put(t, dir+"/nox-mesh.files.sig", sig)
			return p.pack(t, src, "b", "1-1", "any", "")
		}, "do not list the same packages"},
		"a listed package that is gone": {func(t *testing.T, src, dir string) string {
			os.Remove(dir + "/a-2-1-x86_64.pkg.tar.zst")
			os.Remove(dir + "/a-2-1-x86_64.pkg.tar.zst.sig")
			return p.pack(t, src, "b", "1-1", "any", "")
		}, "is listed, but is not there"},
		"a package that was put there": {func(t *testing.T, src, dir string) string {
			p.pack(t, dir, "c", "1-1", "any", "")
			return p.pack(t, src, "b", "1-1", "any", "")
		}, `"c-1-1-any.pkg.tar.zst" is there, but was not added`},
		"a foreign file": {func(t *testing.T, src, dir string) string {
			put(t, dir+"/index.html", nil)
			return p.pack(t, src, "b", "1-1", "any", "")
		}, `"index.html" does not belong into a repository`},
		"a directory": {func(t *testing.T, src, dir string) string {
			if err := os.Mkdir(dir+"/b-1-1-any.pkg.tar.zst", 0o755); err != nil {
				t.Fatal(err)
			}
			return p.pack(t, src, "b", "1-1", "any", "")
		}, "is not a regular file"},
		"too old": {func(t *testing.T, src, dir string) string {
			mustAdd(t, dir, p.options(), p.pack(t, src, "a", "3-1", "x86_64", ""))
			return p.pack(t, src, "a", "1-1", "x86_64", "")
		}, "is older than the 2 that are kept"},
	} {
		t.Run(name, func(t *testing.T) {
			src, dir := t.TempDir(), filepath.Join(t.TempDir(), "repo")
			mustAdd(t, dir, p.options(), p.pack(t, t.TempDir(), "a", "2-1", "x86_64", ""))
			file := c.spoil(t, src, dir)
			before, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Add(t.Context(), dir, []string{file}, p.options())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if after, err := os.Stat(dir); err != nil || !os.SameFile(before, after) {
				t.Errorf("the directory was replaced: %v", err)
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(dir), ".repo.next")); err == nil {
				t.Error("a new directory was left beside it")
			}
		})
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	p := newPublisher(t)
	src, top := t.TempDir(), t.TempDir()
	o := p.options()
	o.DryRun = true
	a := p.pack(t, src, "a", "1-1", "any", "")
	if out, err := Add(t.Context(), top+"/repo", []string{a}, o); err != nil || len(out.Added) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if got := names(t, top); got != "" {
		t.Errorf("there is %s", got)
	}
}

func TestTheDirectoryOneIsInIsNotReplaced(t *testing.T) {
	p := newPublisher(t)
	dir := t.TempDir()
	a := p.pack(t, t.TempDir(), "a", "1-1", "any", "")
	t.Chdir(dir)
	if _, err := Add(t.Context(), ".", []string{a}, p.options()); fault.KindOf(err) != fault.Usage {
		t.Error(err)
	}
}

// A folder without databases is no repository that lists nothing: whoever named it
// meant another.
func TestWhereThereIsNoRepository(t *testing.T) {
	p := newPublisher(t)
	for what, dir := range map[string]string{"an empty folder": t.TempDir(), "nothing": filepath.Join(t.TempDir(), "none")} {
		_, listing := List(t.Context(), dir, p.options())
		_, removing := Remove(t.Context(), dir, []string{"web"}, p.options())
		for _, err := range []error{listing, removing} {
			if fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "there is no repository") || !strings.Contains(fault.RemedyOf(err), "repo add") {
				t.Errorf("%s: %v; %s", what, err, fault.RemedyOf(err))
			}
		}
	}
	pipe := filepath.Join(t.TempDir(), "web-1-1-any.pkg.tar.zst")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Add(t.Context(), filepath.Join(t.TempDir(), "r"), []string{pipe}, p.options()); fault.KindOf(err) != fault.Refused {
		t.Errorf("a pipe: %v", err)
	}
}
