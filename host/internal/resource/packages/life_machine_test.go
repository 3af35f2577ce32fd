//go:build machine

package packages

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

func TestP11P12LifeOfAPackage(t *testing.T) {
	each(t, func(w *world) {
		one, two := w.wish(hello("1")), w.wish(hello("2"))
		rec := w.apply(one, nil)
		for range 10 {
			w.same(one, &rec)
		}
		if len(w.runs) != 1 {
			t.Errorf("more than one call of the manager: %q", w.runs)
		}
		rec = w.apply(two, &rec)
		w.text("/usr/bin/hello", "hello 2\n")
		rec = w.apply(one, &rec) // back
		w.text("/usr/bin/hello", "hello 1\n")
		w.byHand(w.sort.remove(w.l, "hello"))
		w.gone("/usr/bin/hello")
		rec = w.apply(one, &rec)
		w.text("/usr/bin/hello", "hello 1\n")
		w.remove(rec, declaration.Removed)
		w.gone("/usr/bin/hello")
		w.remove(rec, declaration.Removed)
		w.tidy()
	})
}

func TestP01DriftIsRepaired(t *testing.T) {
	each(t, func(w *world) {
		one := w.wish(hello("1"))
		rec := w.apply(one, nil)
		for name, drift := range map[string]func(path string) error{
			"cut":      func(p string) error { return os.Truncate(p, 3) },
			"gone":     os.Remove,
			"replaced": func(p string) error { return errors.Join(os.Remove(p), os.WriteFile(p, []byte("HELLO 1\n"), 0o755)) },
			"same size and time": func(p string) error {
				fi, err := os.Stat(p)
				return errors.Join(err, os.WriteFile(p, []byte("HELLO 1\n"), 0o755), os.Chtimes(p, fi.ModTime(), fi.ModTime()))
			},
			"a symlink": func(p string) error { return errors.Join(os.Remove(p), os.Symlink("/etc/hostname", p)) },
		} {
			if err := drift(w.l.Path("/usr/bin/hello")); err != nil {
				t.Fatal(err)
			}
			if st := w.check(one, &rec); st.Same || st.Foreign || len(st.Differences) != 1 || !strings.Contains(st.Differences[0], "/usr/bin/hello") {
				t.Errorf("%s: %+v", name, st)
			}
			rec = w.apply(one, &rec)
			w.text("/usr/bin/hello", "hello 1\n")
		}
		// A name with a space, and a whole folder.
		if err := os.RemoveAll(w.l.Path("/usr/share/hello")); err != nil {
			t.Fatal(err)
		}
		rec = w.apply(one, &rec)
		w.text("/usr/share/hello/b b", strings.Repeat("1", 1000))
		w.tidy()
	})
}

func TestP12WhatWasThereBeforeStays(t *testing.T) {
	each(t, func(w *world) {
		one, two := w.wish(hello("1")), w.wish(hello("2"))
		file := w.file(hello("1"))
		w.byHand(w.sort.install(w.l, file))
		st := w.same(one, nil) // adopted
		w.remove(record(one, st), declaration.Released)
		w.text("/usr/bin/hello", "hello 1\n")
		if st := w.check(two, nil); !st.Foreign || st.Same {
			t.Errorf("%+v, want it foreign", st)
		}
		two.Resource.TakeOver = true
		rec := w.apply(two, nil)
		w.remove(rec, declaration.Released)
		w.text("/usr/bin/hello", "hello 2\n")
		w.tidy()
	})
}

func TestP10ChangedConfigurationStaysAndIsSaid(t *testing.T) {
	each(t, func(w *world) {
		rec := w.apply(w.wish(hello("1")), nil)
		put(t, w.l.Path("/etc/hello.conf"), "mine\n", 0o644)
		w.same(w.wish(hello("1")), &rec)
		two := w.wish(hello("2"))
		rec = w.apply(two, &rec)
		w.text("/etc/hello.conf", "mine\n")
		w.text("/etc/hello.conf"+w.dist, "default of 2\n")
		if st := w.check(two, &rec); !st.Same || !strings.Contains(st.Note, "/etc/hello.conf"+w.dist) {
			t.Errorf("%+v, want a note", st)
		}
		if err := os.Remove(w.l.Path("/etc/hello.conf")); err != nil {
			t.Fatal(err)
		}
		w.same(two, &rec)
		w.tidy()
	})
}

func TestP10ConfigurationThatIsSavedIsSaid(t *testing.T) {
	w := newWorld(t, pacmanSort)
	rec := w.apply(w.wish(hello("1")), nil)
	put(t, w.l.Path("/etc/hello.conf"), "mine\n", 0o644)
	if note := w.remove(rec, declaration.Removed); !strings.Contains(note, "/etc/hello.conf.pacsave") {
		t.Errorf("it says %q", note)
	}
	w.text("/etc/hello.conf.pacsave", "mine\n")
	w.gone("/usr/bin/hello")
	w.tidy()
}

func TestP08HeldByTheAdministrator(t *testing.T) {
	each(t, func(w *world) {
		one, two := w.wish(hello("1")), w.wish(hello("2"))
		rec := w.apply(one, nil)
		w.hold(t, w.l)
		w.same(one, &rec)
		_, err := w.kind.Check(t.Context(), two, &rec)
		if held := (resource.Held{}); !errors.As(err, &held) || !strings.Contains(held.Why, "version 1-1, want 2-1") || !strings.Contains(held.Why, w.words["held"]) {
			t.Errorf("%v, want it held", err)
		}
		if _, _, err := w.kind.Remove(w.ctx(), rec); !errors.As(err, new(resource.Held)) {
			t.Errorf("%v, want it held", err)
		}
		w.text("/usr/bin/hello", "hello 1\n")
		w.unhold(t, w.l)
		w.apply(two, &rec)
	})
}

func TestP05DamagedContentIsNeverHandedOver(t *testing.T) {
	each(t, func(w *world) {
		one := w.wish(hello("1"))
		source := one.Resource.Package.Source
		f, err := w.store.Open(source)
		if err != nil {
			t.Fatal(err)
		}
		name := f.Name()
		f.Close()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		put(t, name, string(b), 0o600)
		w.fails(one, nil, "the content store is damaged")
		if len(w.runs) != 0 || w.store.Has(source, -1) {
			t.Errorf("runs %q; still in the content store: %v", w.runs, w.store.Has(source, -1))
		}
		w.apply(w.wish(hello("1")), nil)
		w.tidy()
	})
}

func TestWhatIsNotWhatItSaysIsRefused(t *testing.T) {
	each(t, func(w *world) {
		file := w.file(hello("1"))
		w.fails(w.source(file, "other", "1-1"), nil, `is the package "hello"`)
		w.fails(w.source(file, "hello", "2-1"), nil, "has the version 1-1, declared is 2-1")
		rubbish := t.TempDir() + "/rubbish"
		put(t, rubbish, "no package at all", 0o644)
		w.fails(w.source(rubbish, "hello", "1-1"), nil, "cannot read the package")
		if len(w.runs) != 0 {
			t.Errorf("the manager was called: %q", w.runs)
		}
		w.tidy()
	})
}

func TestP09TheWordsOfTheManager(t *testing.T) {
	each(t, func(w *world) {
		r := hello("1")
		r.depends = "nothere"
		w.fails(w.wish(r), nil, w.words["dependency"])
		w.gone("/usr/bin/hello")
		r.depends, r.after = "", "echo the scriptlet says why >&2; exit 1"
		bad := w.wish(r)
		w.fails(bad, nil, w.words["script"])
		r = hello("2")
		rec := record(bad, resource.State{})
		rec = w.apply(w.wish(r), &rec)
		w.tidy()

		// What others need is not removed, and nobody is forced.
		needy := recipe{name: "needy", version: "1-1", files: map[string]string{"usr/bin/needy": "x"}, depends: "hello"}
		w.apply(w.wish(needy), nil)
		if _, _, err := w.kind.Remove(w.ctx(), rec); err == nil || !strings.Contains(err.Error(), w.words["needed"]) {
			t.Errorf("%v, want %q in it", err, w.words["needed"])
		}
		w.text("/usr/bin/hello", "hello 2\n")
		for _, run := range w.runs {
			if strings.Contains(run, "overwrite") || strings.Contains(run, "-dd") || strings.Contains(run, "--force-") && !strings.Contains(run, "--force-confold") {
				t.Errorf("forced: %s", run)
			}
		}
		w.tidy()
	})
}

func TestP03ALiveLockIsWaitedForAndNeverBroken(t *testing.T) {
	each(t, func(w *world) {
		one := w.wish(hello("1"))
		pid, free := w.taken(t, w.l)
		w.fails(one, nil, "in use by process ", "for more than")
		if len(w.runs) != 0 || syscall.Kill(pid, 0) != nil {
			t.Errorf("runs %q", w.runs)
		}
		w.kind.patience = time.Minute
		done := make(chan error, 1)
		go func() { done <- w.kind.Apply(w.ctx(), one, nil, resource.State{}) }()
		free()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		w.same(one, nil)
		w.tidy()
	})
}

func TestP06AnImmutableFileIsAFailure(t *testing.T) {
	each(t, func(w *world) {
		one, two := w.wish(hello("1")), w.wish(hello("2"))
		rec := w.apply(one, nil)
		tool(t, "/", "chattr", "+i", w.l.Path("/usr/bin/hello"))
		free := func() { tool(t, "/", "chattr", "-i", w.l.Path("/usr/bin/hello")) }
		defer free()
		w.fails(two, &rec)
		w.text("/usr/bin/hello", "hello 1\n")
		free()
		w.apply(two, &rec)
		w.text("/usr/bin/hello", "hello 2\n")
		tool(t, "/", "chattr", "+i", w.l.Path("/usr/bin/hello")) // for the deferred
		w.tidy()
	})
}
