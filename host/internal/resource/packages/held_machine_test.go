//go:build machine

package packages

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// whole is content of which all is here.
type whole struct{}

func (whole) Ensure(context.Context, digest.Digest) error { return nil }

// host is an engine over the world.
func (w *world) host() *apply.Engine {
	w.Helper()
	dir := w.l.HostState()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.Fatal(err)
	}
	s, err := store.Open(filepath.Join(dir, "store.db"), clock.System, slog.New(slog.DiscardHandler))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { s.Close() })
	return &apply.Engine{
		Store: s, Kinds: map[declaration.Type]resource.Kind{declaration.TypePackage: w.kind}, Content: whole{}, Layout: w.l,
		Clock: clock.System, Log: slog.New(slog.DiscardHandler), Mesh: func() string { return "" },
	}
}

func declared(wants ...resource.Want) []byte {
	var list []string
	for i, w := range wants {
		list = append(list, fmt.Sprintf(`{"id":"p%d",`, i)+strings.TrimPrefix(string(w.Spec), "{"))
	}
	return []byte(`{"schema":1,"name":"packages","resources":[` + strings.Join(list, ",") + `]}`)
}

// says are the plan for the document and then the report on it, of one resource.
func (w *world) says(e *apply.Engine, doc []byte) (plan, report string) {
	w.Helper()
	steps, err := e.Plan(w.ctx(), store.SourceFile, doc)
	if err != nil || len(steps) != 1 {
		w.Fatalf("%+v, %v", steps, err)
	}
	_, err = e.Accept(w.ctx(), store.Wanted{Source: store.SourceFile, Document: doc}, false)
	if err != nil {
		w.Fatal(err)
	}
	r, err := e.Reconcile(w.ctx(), "test", false)
	if err != nil || len(r.Resources) != 1 {
		w.Fatalf("%+v, %v", r, err)
	}
	x := r.Resources[0]
	return strings.TrimSpace(fmt.Sprintf("%s %s%s", steps[0].Action, steps[0].Note, steps[0].Error)),
		strings.TrimSpace(fmt.Sprintf("%s %s%s", x.Outcome, x.Note, x.Error))
}

func TestP08PlanAndReportSayWhoHoldsItAndHowThatEnds(t *testing.T) {
	each(t, func(w *world) {
		e := w.host()
		one, two := declared(w.wish(hello("1"))), declared(w.wish(hello("2")))
		if plan, report := w.says(e, one); plan != "create" || report != "applied" {
			t.Errorf("plan %q, report %q", plan, report)
		}
		w.hold(t, w.l)
		runs := len(w.runs)
		for _, c := range []struct{ doc, want string }{
			{string(two), "held version 1-1, want 2-1: " + w.words["held"]},
			{string(declared()), "held " + w.words["held"]},
		} {
			if plan, report := w.says(e, []byte(c.doc)); plan != c.want || report != c.want {
				t.Errorf("plan %q, report %q, want %q", plan, report, c.want)
			}
		}
		if len(w.runs) != runs {
			t.Errorf("what is held was worked on: %q", w.runs[runs:])
		}
		w.unhold(t, w.l)
		if plan, report := w.says(e, two); plan != "change" || report != "applied" {
			t.Errorf("plan %q, report %q", plan, report)
		}
		w.text("/usr/bin/hello", "hello 2\n")
		// One that was there is let go of, by the same words.
		if plan, report := w.says(e, declared()); plan != "remove" || report != "removed" {
			t.Errorf("plan %q, report %q", plan, report)
		}
		w.byHand(w.sort.install(w.l, w.file(hello("1"))))
		if plan, report := w.says(e, one); plan != "adopt" || report != "adopted" {
			t.Errorf("plan %q, report %q", plan, report)
		}
		const why = " it was installed before this host came"
		if plan, report := w.says(e, declared()); plan != "release"+why || report != "released"+why {
			t.Errorf("plan %q, report %q", plan, report)
		}
		w.tidy()
	})
}
