package resourcetest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A bench is one fresh root with the kind over it.
type bench struct {
	t    *testing.T
	s    Suite
	l    layout.Layout
	kind resource.Kind
	want resource.Want
}

func (s Suite) bench(t *testing.T) *bench {
	l := layout.Layout{Root: freshRoot(t)}
	if s.Prepare != nil {
		s.Prepare(t, l)
	}
	b := &bench{t: t, s: s, l: l, kind: s.New(t, l), want: s.Want(l)}
	t.Cleanup(func() {
		// Whatever failed, nothing may be left running.
		_, _, _ = b.kind.Remove(context.Background(), b.record(nil))
	})
	return b
}

// freshRoot makes an empty root, in memory where there is such a place: what is
// tested is what is called and in which order, and each fsync of a busy disk
// takes its time. There is room beside the root, too.
func freshRoot(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "nox-resourcetest-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func (b *bench) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	b.t.Cleanup(cancel)
	return ctx
}

func (b *bench) record(before json.RawMessage) resource.Record {
	r := b.want.Resource
	return resource.Record{Key: r.Key(), ID: r.ID, Type: r.Type, Spec: b.want.Spec, Before: before, Generation: 1}
}

func (b *bench) check(prior *resource.Record) resource.State {
	b.t.Helper()
	st, err := b.kind.Check(b.context(), b.want, prior)
	if err != nil {
		b.t.Fatalf("Check: %v", err)
	}
	return st
}

// apply does what the engine does: look, act, look again.
func (b *bench) apply(prior *resource.Record) resource.Record {
	b.t.Helper()
	found := b.check(prior)
	if err := b.kind.Apply(b.context(), b.want, prior, found); err != nil {
		b.t.Fatalf("Apply: %v", err)
	}
	before := found.Found
	if prior != nil {
		before = prior.Before
	}
	rec := b.record(before)
	b.same(&rec, "after Apply")
	return rec
}

func (b *bench) same(prior *resource.Record, when string) {
	b.t.Helper()
	if st := b.check(prior); !st.Same || !st.Exists || st.Foreign {
		b.t.Fatalf("%s Check says %+v, want Same and Exists", when, st)
	}
}

func (s Suite) applied(t *testing.T) {
	b := s.bench(t)
	st := b.check(nil)
	if st.Same || st.Exists || st.Foreign || st.Found != nil {
		t.Fatalf("on an empty root Check says %+v, want that nothing is there", st)
	}
	if len(st.Differences) == 0 {
		t.Error("Check says not Same and names no difference")
	}
	b.apply(nil)
}

func (s Suite) silent(t *testing.T) {
	b := s.bench(t)
	rec := b.apply(nil)
	before := Snapshot(t, b.l.Root)
	b.same(&rec, "the second time")
	// Apply on what is as wanted must change nothing either.
	if err := b.kind.Apply(b.context(), b.want, &rec, b.check(&rec)); err != nil {
		t.Fatalf("Apply again: %v", err)
	}
	before.Unchanged(t, b.l.Root)
}

func (s Suite) changed(t *testing.T) {
	b := s.bench(t)
	rec := b.apply(nil)
	b.want = s.Other(b.l)
	if st := b.check(&rec); st.Same || !st.Exists || st.Foreign || len(st.Differences) == 0 {
		t.Fatalf("with another wish Check says %+v, want differences in a thing of ours", st)
	}
	b.apply(&rec)
}

func (s Suite) drift(t *testing.T, drift func(*testing.T, layout.Layout)) {
	b := s.bench(t)
	rec := b.apply(nil)
	drift(t, b.l)
	if st := b.check(&rec); st.Same || st.Foreign || len(st.Differences) == 0 {
		t.Fatalf("after the drift Check says %+v, want differences in a thing of ours", st)
	}
	b.apply(&rec)
}

func (b *bench) remove(rec resource.Record) {
	b.t.Helper()
	for range 2 { // the second time everything is gone already
		out, _, err := b.kind.Remove(b.context(), rec)
		if err != nil || out != declaration.Removed {
			b.t.Fatalf("Remove says %q, %v; want %q", out, err, declaration.Removed)
		}
	}
}

func (s Suite) removed(t *testing.T) {
	b := s.bench(t)
	b.remove(b.apply(nil))
	if st := b.check(nil); st.Exists || st.Same || st.Found != nil {
		t.Fatalf("after Remove Check says %+v, want that nothing is there", st)
	}
}

func (s Suite) givenBack(t *testing.T) {
	if s.Before == nil {
		t.Skip("this kind replaces nothing that was there before")
	}
	b := s.bench(t)
	s.Before(t, b.l)
	before := Snapshot(t, b.l.Root)
	rec := b.apply(nil)
	if rec.Before == nil {
		t.Fatal("something was there and Check found nothing to give back")
	}
	b.remove(rec)
	before.SameContent(t, b.l.Root)
}

func (s Suite) adopted(t *testing.T) {
	b := s.bench(t)
	b.apply(nil)
	before := Snapshot(t, b.l.Root)
	b.same(nil, "without a record")
	before.Unchanged(t, b.l.Root)
}

func (s Suite) foreign(t *testing.T) {
	if s.Foreign == nil {
		t.Skip("this kind has no foreign things")
	}
	b := s.bench(t)
	s.Foreign(t, b.l)
	before := Snapshot(t, b.l.Root)
	if st := b.check(nil); !st.Foreign || !st.Exists || st.Same {
		t.Fatalf("Check says %+v, want Foreign", st)
	}
	before.Unchanged(t, b.l.Root)
	if err := os.RemoveAll(b.l.Root); err != nil {
		t.Fatal(err)
	}
}
