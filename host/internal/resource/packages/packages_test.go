package packages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A paper is a database without a manager: whatever is run fails the test.
type paper struct {
	Manager
	is     database.Package
	signed bool
}

func (p *paper) Name() string                          { return "paper" }
func (p *paper) Suffix() string                        { return ".paper" }
func (p *paper) WantsSignature() bool                  { return p.signed }
func (p *paper) Look(string) (database.Package, error) { return p.is, nil }

func wanted(t testing.TB, spec string) resource.Want {
	t.Helper()
	r, err := declaration.FromSpec("it", []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	return resource.Want{Resource: r, Spec: r.Spec()}
}

func digests(c string) string { return "sha256:" + strings.Repeat(c, 64) }

func TestDecisionsOfALook(t *testing.T) {
	installed := func(version, broken, held string) database.Package {
		return database.Package{Installed: true, Version: version, Broken: broken, Held: held}
	}
	from := func(c string) string {
		return `{"type":"package","name":"it","version":"1","source":"` + digests(c) + `"}`
	}
	for _, c := range []struct {
		name, spec, prior string
		is                database.Package
		signed            bool
		same, foreign     bool
		says              string
	}{
		{"not there", `{"type":"package","name":"it"}`, "", database.Package{}, false, false, false, "not installed"},
		{"any version", `{"type":"package","name":"it"}`, "", installed("1", "", ""), false, true, false, ""},
		{"held, and as declared", `{"type":"package","name":"it"}`, "", installed("1", "", "a line"), false, true, false, ""},
		{"held, and not", `{"type":"package","name":"it","version":"2"}`, "", installed("1", "", "a line"), false, false, false, "version 1, want 2: a line"},
		{"held before it was there", `{"type":"package","name":"it"}`, "", database.Package{Held: "a line"}, false, false, false, "not installed: a line"},
		{"somebody's", `{"type":"package","name":"it","version":"2"}`, "", installed("1", "", ""), false, false, true, "version 1, want 2"},
		{"ours", `{"type":"package","name":"it","version":"2"}`, `{"type":"package","name":"it"}`, installed("1", "", ""), false, false, false, "version 1, want 2"},
		{"somebody's, broken", `{"type":"package","name":"it"}`, "", installed("1", "is unpacked", ""), false, false, true, "is unpacked"},
		{"the host's own", `{"type":"package","name":"nox-mesh-host","version":"2"}`, "", installed("1", "", ""), false, false, false, "version 1, want 2"},
		{"the same source", from("a"), from("a"), installed("1", "", ""), false, true, false, ""},
		{"another source of the version", from("b"), from("a"), installed("1", "", ""), false, false, false, "from another source"},
		{"a source and no signature", from("a"), "", installed("1", "", ""), true, false, false, "wants the signature"},
	} {
		k := New(Config{Layout: layout.Layout{Root: t.TempDir()}, Clock: clock.System, Manager: &paper{is: c.is, signed: c.signed}})
		var prior *resource.Record
		if c.prior != "" {
			prior = &resource.Record{ID: "it", Spec: []byte(c.prior)}
		}
		st, err := k.Check(t.Context(), wanted(t, c.spec), prior)
		said := strings.Join(st.Differences, ", ")
		if err != nil {
			said = err.Error()
		}
		if st.Same != c.same || st.Foreign != c.foreign || !strings.Contains(said, c.says) || c.same && said != "" {
			t.Errorf("%s: %+v, %v; want same %v, foreign %v, %q", c.name, st, err, c.same, c.foreign, c.says)
		}
		if c.is.Held != "" && !c.same && !errors.As(err, new(resource.Held)) {
			t.Errorf("%s: %v is not that it is held", c.name, err)
		}
	}
}

func TestNoPackageManager(t *testing.T) {
	k := New(Config{Layout: layout.Layout{Root: t.TempDir()}, Clock: clock.System})
	_, err := k.Check(t.Context(), wanted(t, `{"type":"package","name":"it"}`), nil)
	if why := (resource.Unsupported{}); !errors.As(err, &why) || why.Why == "" {
		t.Errorf("%v", err)
	}
}

// TestAManagerIsChosenWhenItIsThere: a disk that failed while the host began is no
// reason to be without one until the next start. Several may ask at once.
func TestAManagerIsChosenWhenItIsThere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: packages are root's")
	}
	l := layout.Layout{Root: t.TempDir()}
	k := New(Config{Layout: l, Clock: clock.System})
	w := wanted(t, `{"type":"package","name":"it"}`)
	if _, err := k.Check(t.Context(), w, nil); !errors.As(err, new(resource.Unsupported)) {
		t.Fatalf("none: %v", err)
	}
	for _, f := range []string{"/usr/bin/apt-get", "/usr/bin/dpkg", "/var/lib/dpkg/status"} {
		if err := os.MkdirAll(filepath.Dir(l.Path(f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(l.Path(f), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if st, err := k.Check(t.Context(), w, nil); err != nil || st.Same {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
	all.Wait()
	if k.Manager == nil || k.Manager.Name() != "dpkg" {
		t.Errorf("%v", k.Manager)
	}
}

func TestTheHostIsNeverRemoved(t *testing.T) {
	for name, is := range map[string]database.Package{
		"nox-mesh-host": {Installed: true},
		"mesh-all":      {Installed: true, Files: []database.File{{Path: "/usr/bin/mesh-host"}}},
	} {
		k := New(Config{Layout: layout.Layout{Root: t.TempDir()}, Clock: clock.System, Manager: &paper{is: is}})
		out, note, err := k.Remove(t.Context(), resource.Record{Key: "package:" + name})
		if out != declaration.Released || !strings.Contains(note, "the host itself stays") || err != nil {
			t.Errorf("%s: %q, %q, %v", name, out, note, err)
		}
	}
}

// files makes n files of which a database knows the digests.
func files(t testing.TB, root string, n int) (all []database.File) {
	t.Helper()
	for i := range n {
		name := filepath.Join("/usr", string(rune('a'+i%26)), "f"+time.Duration(i).String())
		text := strings.Repeat(name, 200)
		if err := errors.Join(os.MkdirAll(filepath.Dir(root+name), 0o755), os.WriteFile(root+name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		all = append(all, database.File{Path: name, Kind: database.Regular, Size: int64(len(text)), Sum: sum(text)})
	}
	return all
}

func TestP01AFileIsHashedAgainWhenItChanged(t *testing.T) {
	root := t.TempDir()
	is := database.Package{Installed: true, Files: files(t, root, 1)}
	later := clock.At(time.Now().Add(time.Hour)) // so that what was made just now is settled
	k := New(Config{Layout: layout.Layout{Root: root}, Clock: later, Manager: &paper{is: is}})
	one := wanted(t, `{"type":"package","name":"it"}`)
	look := func(same bool, hashed int) {
		t.Helper()
		st, err := k.Check(context.Background(), one, nil)
		if err != nil || st.Same != same || k.seen.hashed != hashed {
			t.Errorf("%+v, %v, hashed %d times; want same %v, %d", st, err, k.seen.hashed, same, hashed)
		}
	}
	look(true, 1)
	look(true, 1)
	name := root + is.Files[0].Path
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ToUpper(strings.Repeat(is.Files[0].Path, 200))
	if err := errors.Join(os.WriteFile(name, []byte(text), 0o644), os.Chtimes(name, fi.ModTime(), fi.ModTime())); err != nil {
		t.Fatal(err)
	}
	look(false, 2)

	// One that changed a moment ago may change again in the same tick.
	k.seen.clock = clock.System
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	look(false, 3)
	look(false, 4)
}

func BenchmarkLookAt5000Files(b *testing.B) {
	root := b.TempDir()
	is := database.Package{Installed: true, Files: files(b, root, 5000)}
	one := wanted(b, `{"type":"package","name":"it"}`)
	for _, first := range []bool{true, false} {
		name := map[bool]string{true: "first", false: "again"}[first]
		b.Run(name, func(b *testing.B) {
			k := New(Config{Layout: layout.Layout{Root: root}, Clock: clock.At(time.Now().Add(time.Hour)), Manager: &paper{is: is}})
			for b.Loop() {
				if first {
					k.seen = newSeen(k.Clock)
				}
				if st, err := k.Check(b.Context(), one, nil); err != nil || !st.Same {
					b.Fatal(st, err)
				}
			}
		})
	}
}

// sum is what sha256sum(1) prints.
func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}
