package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
)

func TestH06ASecondPassWritesNothing(t *testing.T) {
	l := newLab(t)
	l.want(l.applied(aFile("a", "/etc/a", "1"), aProcess("p", "")), "applied file:/etc/a", "applied process:p")
	l.restart()
	l.want(l.pass(), "unchanged file:/etc/a", "unchanged process:p")
	if n := l.engine.Store.Writes(); n != 0 {
		t.Errorf("%d pages written to the store", n)
	}
}

func TestDriftIsRepairedAndSaid(t *testing.T) {
	l := newLab(t)
	l.applied(aFile("a", "/etc/a", "1"))
	if err := os.WriteFile(filepath.Join(l.root, "etc/a"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	l.want(l.pass(), "repaired file:/etc/a (drifted: content)")
	if got := l.read("etc/a"); got != "1" {
		t.Errorf("content %q", got)
	}
}

func TestWhatIsNoLongerDeclaredIsRemovedLastFirst(t *testing.T) {
	l := newLab(t)
	l.applied(aProcess("one", ""), aProcess("two", ""), aFile("a", "/etc/a", "1"))
	l.want(l.applied(aProcess("three", "")), "removed file:/etc/a", "removed process:two", "removed process:one", "applied process:three")
	if r, _ := l.engine.Store.Records(); len(r) != 1 {
		t.Errorf("%d records left", len(r))
	}
}

// The directories that files lie in are made for the first of them and go with the
// last, in whatever order they come and go.
func TestADirectoryTheHostMadeGoesWithTheLastThatNeedsIt(t *testing.T) {
	a, b := aFile("a", "/srv/w/x/a", "1"), aFile("b", "/srv/w/x/b", "2")
	w := `{"id": "w", "type": "file", "path": "/srv/w", "directory": true}`
	for name, steps := range map[string][][]string{
		"the first file goes first":      {{a}, {a, b}, {b}},
		"both go":                        {{a}, {a, b}},
		"the directory is declared late": {{a}, {a, w}, {w}},
		"and goes early":                 {{a}, {a, w}, {a}},
		"the directory was first":        {{w}, {w, a}, {a}},
		"all of it":                      {{a}, {a, b, w}, {b, w}, {b}, {b, w}, {w}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			for _, step := range steps {
				got := l.applied(step...)
				if strings.Contains(got, "repaired") || strings.Contains(got, "failed") {
					t.Error(got)
				}
			}
			l.applied()
			if es, err := os.ReadDir(filepath.Join(l.root, "srv")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("left in /srv: %v, %v", es, err)
			}
		})
	}
	t.Run("one that was there stays", func(t *testing.T) {
		l := newLab(t)
		if err := os.MkdirAll(filepath.Join(l.root, "srv/w"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, step := range [][]string{{a}, {a, b, w}, {b, w}, {b}, {}} {
			l.applied(step...)
		}
		if es, err := os.ReadDir(filepath.Join(l.root, "srv/w")); err != nil || len(es) != 0 {
			t.Errorf("left in /srv/w: %v, %v", es, err)
		}
	})
}

func TestAFailureFailsAloneAndWhatWaitsForItIsSkipped(t *testing.T) {
	l := newLab(t)
	l.machine.fail["bad"] = errors.New("cannot start it: no such thing")
	got := l.applied(aProcess("bad", ""), aProcess("child", `, "after": ["bad"]`), aProcess("grandchild", `, "after": ["child"]`), aProcess("other", ""))
	l.want(got,
		"failed process:bad (cannot start it: no such thing)",
		`skipped process:child (waits for "bad", which is failed)`,
		`skipped process:grandchild (waits for "child", which is skipped)`,
		"applied process:other")
	if r, _ := l.engine.Store.Records(); len(r) != 1 {
		t.Errorf("%d records: only what worked is owned", len(r))
	}
}

// F-06: what failed before it touched anything leaves no claim to what somebody else
// makes there.
func TestF06WhatFailedIsNotOursWhenSomebodyMakesIt(t *testing.T) {
	l := newLab(t)
	a := strings.Replace(aFile("a", "/etc/a", "1"), "}", `, "owner": "nobody-of-this-name"}`, 1)
	if got := l.applied(a); !strings.HasPrefix(got, "failed file:/etc/a") {
		t.Fatal(got)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(l.root, "etc"), 0o755), os.WriteFile(filepath.Join(l.root, "etc/a"), []byte("mine"), 0o644)); err != nil {
		t.Fatal(err)
	}
	l.pass()
	if r, err := l.engine.Store.Records(); err != nil || len(r) != 0 {
		t.Errorf("owned: %+v, %v", r, err)
	}
	l.want(l.applied(), "")
	if got := l.read("etc/a"); got != "mine" {
		t.Errorf("somebody's file holds %q", got)
	}
}

// Killed between saying what it will do and doing it; then somebody makes the file.
func TestWhatSomebodyMakesAfterAKillIsTheirs(t *testing.T) {
	l := newLab(t)
	if err := l.accept(aFile("a", "/etc/a", "1")); err != nil {
		t.Fatal(err)
	}
	spec := `{"content":"1","group":"root","mode":"0644","owner":"root","path":"/etc/a","type":"file"}`
	if err := l.engine.Store.Begin(store.Intent{Key: "file:/etc/a", ID: "a", Type: declaration.TypeFile, Spec: []byte(spec), Before: []byte(`{"kind":"nothing","parents":["/etc"]}`)}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(l.root, "etc"), 0o755), os.WriteFile(filepath.Join(l.root, "etc/a"), []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	l.want(l.pass(), "applied file:/etc/a")
	l.want(l.applied(), "removed file:/etc/a")
	if got := l.read("etc/a"); got != "mine" {
		t.Errorf("given back: %q", got)
	}
}

func TestSuccessIsWhatALookSays(t *testing.T) {
	l := newLab(t)
	l.machine.lies["p"] = true
	l.want(l.applied(aProcess("p", "")), "failed process:p (was applied and is still not as declared: definition)")
	if r, _ := l.engine.Store.Records(); len(r) != 0 {
		t.Errorf("recorded as owned: %+v", r)
	}
}

func TestWhatIsNotOursIsLeftAloneUnlessTakenOver(t *testing.T) {
	l := newLab(t)
	l.machine.runs["p"] = "somebody's"
	got := l.applied(aProcess("p", ""))
	if !strings.HasPrefix(got, "failed process:p (exists and is not ours") || len(l.machine.log) != 0 {
		t.Errorf("%s; %v", got, l.machine.log)
	}
	l.want(l.applied(aProcess("p", `, "take_over": true`)), "applied process:p")
	if r, _ := l.engine.Store.Records(); string(r[0].Before) != `"somebody's"` {
		t.Errorf("what was there before is lost: %s", r[0].Before)
	}
}

func TestWhatAlreadyIsAsDeclaredIsAdopted(t *testing.T) {
	l := newLab(t)
	if err := os.Mkdir(filepath.Join(l.root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.root, "etc/a"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	l.want(l.applied(aFile("a", "/etc/a", "1")), "adopted file:/etc/a")
	l.want(l.applied(), "released file:/etc/a (it was there before the host owned it)")
	if got := l.read("etc/a"); got != "1" {
		t.Errorf("content %q", got)
	}
}

func TestRestartOnHappensOncePerApply(t *testing.T) {
	l := newLab(t)
	p := aProcess("p", `, "restart_on": ["a", "b"]`)
	l.applied(aFile("a", "/etc/a", "1"), aFile("b", "/etc/b", "1"), p)
	l.machine.log = nil
	l.want(l.applied(aFile("a", "/etc/a", "2"), aFile("b", "/etc/b", "2"), p), "applied file:/etc/a", "applied file:/etc/b", "applied process:p")
	l.want(l.pass(), "unchanged file:/etc/a", "unchanged file:/etc/b", "unchanged process:p")
	if got := strings.Join(l.machine.log, " "); got != "start p" {
		t.Errorf("the process saw: %s", got)
	}
}

func TestARestartIsNotForgottenWhenTheHostIsKilledBeforeIt(t *testing.T) {
	l := newLab(t)
	p := aProcess("p", `, "restart_on": ["a"]`)
	l.applied(aFile("a", "/etc/a", "1"), p)
	l.machine.log = nil
	if err := l.accept(aFile("a", "/etc/a", "2"), p); err != nil {
		t.Fatal(err)
	}
	l.machine.crash = "p"
	l.killed()
	l.machine.crash = ""
	l.restart()
	l.want(l.pass(), "unchanged file:/etc/a", "applied process:p")
	if got := strings.Join(l.machine.log, " "); got != "start p start p" {
		t.Errorf("the process saw: %s", got)
	}
}

func TestH03KilledBetweenDoingAndRecordingThenUndeclared(t *testing.T) {
	l := newLab(t)
	if err := l.accept(aProcess("p", "")); err != nil {
		t.Fatal(err)
	}
	l.machine.crash = "p"
	l.killed()
	l.restart()
	l.want(l.applied(aFile("a", "/etc/a", "1")), "removed process:p", "applied file:/etc/a")
	if len(l.machine.runs) != 0 {
		t.Errorf("leaked: %v", l.machine.runs)
	}
}

func TestTheMeshTakesOverWithoutTouching(t *testing.T) {
	l := newLab(t)
	l.applied(aFile("a", "/etc/a", "1"), aProcess("p", `, "restart_on": ["a"]`))
	l.machine.log = nil
	l.mesh = "M"
	composed := document(aFile("cp/a", "/etc/a", "1"), strings.Replace(aProcess("p", `, "restart_on": ["cp/a"]`), `"id": "p"`, `"id": "cp/p"`, 1))
	if _, err := l.engine.Accept(t.Context(), store.Wanted{Source: store.SourceLink, Mesh: "M", Epoch: 1, Document: composed}, false); err != nil {
		t.Fatal(err)
	}
	l.want(l.pass(), "unchanged file:/etc/a", "unchanged process:p")
	if len(l.machine.log) != 0 {
		t.Errorf("the process saw: %v", l.machine.log)
	}
	r, _ := l.engine.Store.Records()
	if len(r) != 2 || r[0].Mesh != "M" || r[0].ID != "cp/a" || r[1].Epoch != 1 {
		t.Errorf("records: %+v", r)
	}
	l.want(l.pass(), "unchanged file:/etc/a", "unchanged process:p")
}

func TestContentThatCannotBeHadFailsItsResourceBeforeAnythingIsTouched(t *testing.T) {
	l := newLab(t)
	d := digest.FromString("nowhere")
	got := l.applied(fmt.Sprintf(`{"id": "a", "type": "file", "path": "/etc/a", "source": %q}`, d), aFile("b", "/etc/b", "1"))
	l.want(got, "failed file:/etc/a (no such content)", "applied file:/etc/b")
	if open, _ := l.engine.Store.Intents(); len(open) != 0 {
		t.Errorf("an intent for what was never begun: %+v", open)
	}
}

func TestNothingIsTakenAwayWhileContentIsMissing(t *testing.T) {
	l := newLab(t)
	l.applied(aFile("old", "/etc/old", "1"))
	got := l.applied(fmt.Sprintf(`{"id": "a", "type": "file", "path": "/etc/a", "source": %q}`, digest.FromString("nowhere")))
	l.want(got, "skipped file:/etc/old (stays until all content of the new declaration is here)", "failed file:/etc/a (no such content)")
	if l.read("etc/old") != "1" {
		t.Error("it was taken away")
	}
}

func TestAPanicFailsItsResourceAlone(t *testing.T) {
	l := newLab(t)
	l.machine.runs = nil // a write to it panics
	got := l.applied(aProcess("p", ""), aFile("b", "/etc/b", "1"))
	l.want(got, "failed process:p (internal error: assignment to entry in nil map)", "applied file:/etc/b")
}

func TestATypeThisHostCannotApplyIsUnsupportedAndSaysSo(t *testing.T) {
	l := newLab(t)
	docs := []string{
		`{"id": "htop", "type": "package", "name": "htop"}`,
		`{"id": "timer", "type": "unit", "name": "b.timer", "active": true}`,
		`{"id": "web", "type": "container", "name": "web", "image": "docker.io/library/web@sha256:` + strings.Repeat("a", 64) + `"}`,
		aFile("a", "/etc/a", "1"),
		`{"id": "b", "type": "file", "path": "/etc/b", "content": "", "after": ["htop"]}`,
	}
	steps, err := l.engine.Plan(t.Context(), store.SourceFile, document(docs...))
	if err != nil {
		t.Fatal(err)
	}
	for i, typ := range []string{"package", "unit", "container"} {
		if s := steps[i]; s.Action != "unsupported" || s.Todo() || !strings.Contains(s.Error, `"`+typ+`"`) {
			t.Errorf("%+v", s)
		}
	}
	const why = " (this version of the host cannot apply resources of the type "
	l.want(l.applied(docs...),
		"unsupported package:htop"+why+`"package")`, "unsupported unit:b.timer"+why+`"unit")`, "unsupported container:web"+why+`"container")`,
		"applied file:/etc/a", `skipped file:/etc/b (waits for "htop", which is unsupported)`)
}

// holding is a kind whose things somebody holds as they are.
type holding struct{ resource.Kind }

func (holding) Check(context.Context, resource.Want, *resource.Record) (resource.State, error) {
	return resource.State{}, fmt.Errorf("cannot change it: %w", resource.Held{Why: "IgnorePkg names it"})
}

func (holding) Remove(context.Context, resource.Record) (declaration.Outcome, string, error) {
	return "", "", resource.Held{Why: "it is on hold"}
}

func (holding) Parting() func(context.Context, resource.Record) (string, error) {
	return func(context.Context, resource.Record) (string, error) { return "", resource.Held{Why: "it is on hold"} }
}

func TestP08WhatSomebodyHoldsIsHeldAndSaysWhy(t *testing.T) {
	l := newLab(t)
	file := l.engine.Kinds[declaration.TypeFile]
	l.want(l.applied(aFile("a", "/etc/a", "1")), "applied file:/etc/a")
	l.engine.Kinds[declaration.TypeFile] = holding{}
	steps, err := l.engine.Plan(t.Context(), store.SourceFile, document(aFile("a", "/etc/a", "2")))
	if err != nil || steps[0].Action != Held || steps[0].Todo() || steps[0].Note != "IgnorePkg names it" {
		t.Errorf("%+v, %v", steps, err)
	}
	steps, err = l.engine.Plan(t.Context(), store.SourceFile, document())
	if err != nil || steps[0].Action != Held || steps[0].Todo() || steps[0].Note != "it is on hold" {
		t.Errorf("of what is no longer declared: %+v, %v", steps, err)
	}
	l.want(l.applied(aFile("a", "/etc/a", "2")), "held file:/etc/a (IgnorePkg names it)")
	l.want(l.applied(), "held file:/etc/a (it is on hold)")
	l.engine.Kinds[declaration.TypeFile] = file
	l.want(l.pass(), "removed file:/etc/a")
}

// without is a kind on a machine that lacks what it needs.
type without struct{ resource.Kind }

func (without) Check(context.Context, resource.Want, *resource.Record) (resource.State, error) {
	return resource.State{}, fmt.Errorf("cannot look at it: %w", resource.Unsupported{Why: "systemd does not run here"})
}

func TestWhatThisMachineCannotHaveIsUnsupportedAndSaysWhy(t *testing.T) {
	l := newLab(t)
	l.engine.Kinds[declaration.TypeUnit] = without{}
	docs := []string{
		`{"id": "timer", "type": "unit", "name": "b.timer", "active": true}`,
		aFile("a", "/etc/a", "1"),
		`{"id": "b", "type": "file", "path": "/etc/b", "content": "", "after": ["timer"]}`,
	}
	steps, err := l.engine.Plan(t.Context(), store.SourceFile, document(docs...))
	if err != nil {
		t.Fatal(err)
	}
	if s := steps[0]; s.Action != Unsupported || s.Todo() || s.Error != "systemd does not run here" {
		t.Errorf("%+v", s)
	}
	want := []string{"unsupported unit:b.timer (systemd does not run here)", `skipped file:/etc/b (waits for "timer", which is unsupported)`}
	l.want(l.applied(docs...), want[0], "applied file:/etc/a", want[1])
	l.want(l.pass(), want[0], "unchanged file:/etc/a", want[1])
	if open, _ := l.engine.Store.Intents(); len(open) != 0 {
		t.Errorf("an intent for what was never begun: %+v", open)
	}
}
