package apply

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/internal/store"
)

func TestPlanSaysWhatApplyWouldDo(t *testing.T) {
	l := newLab(t)
	p := aProcess("p", `, "restart_on": ["a"]`)
	l.applied(aFile("a", "/etc/a", "1"), aFile("gone", "/etc/gone", "1"), p)
	steps, err := l.engine.Plan(t.Context(), store.SourceFile, document(aFile("a", "/etc/a", "2"), aFile("new", "/etc/new", "1"), p))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		got = append(got, string(s.Action)+" "+s.Key)
	}
	l.want(strings.Join(got, "\n"), "remove file:/etc/gone", "change file:/etc/a", "create file:/etc/new", "restart process:p")
	if l.read("etc/a") != "1" || l.read("etc/new") != "(no such file or directory)" {
		t.Error("plan changed something")
	}
}

func TestPlanSaysWhatIsLetGo(t *testing.T) {
	l := newLab(t)
	for path, text := range map[string]string{"srv/old/x": "", "srv/was": "mine"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(l.root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(l.root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir := func(path string) string {
		return `{"id": "` + path[1:] + `", "type": "file", "path": "` + path + `", "directory": true}`
	}
	l.applied(aFile("was", "/srv/was", "mine"), dir("/srv/old"), dir("/srv/full"), dir("/srv/both"), aFile("in", "/srv/both/sub/in", "1"),
		dir("/srv/edited"), aFile("ours", "/srv/edited/ours", "1"), aFile("f", "/srv/f", "1"))
	for _, path := range []string{"srv/full/theirs", "srv/edited/ours"} {
		if err := os.WriteFile(filepath.Join(l.root, path), []byte("theirs"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Remove(filepath.Join(l.root, "srv/f")), os.Mkdir(filepath.Join(l.root, "srv/f"), 0o755)); err != nil {
		t.Fatal(err)
	}
	steps, err := l.engine.Plan(t.Context(), store.SourceFile, document())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		if got = append(got, strings.TrimSpace(string(s.Action)+" "+s.Key+" "+s.Note)); s.Error != "" || !s.Todo() {
			t.Errorf("%+v", s)
		}
	}
	l.want(strings.Join(got, "\n"),
		"remove file:/srv/edited/ours", "remove file:/srv/both/sub/in",
		"release file:/srv/f it is a directory now, which the host did not make",
		"release file:/srv/edited it is not empty", "remove file:/srv/both",
		"release file:/srv/full it is not empty", "release file:/srv/old it was there before the host owned it",
		"release file:/srv/was it was there before the host owned it")
	l.want(l.applied(),
		`removed file:/srv/edited/ours (somebody changed it: what it was is in "ours.nox-saved")`,
		"removed file:/srv/both/sub/in", "released file:/srv/f (it is a directory now, which the host did not make)",
		"released file:/srv/edited (it is not empty)", "removed file:/srv/both",
		"released file:/srv/full (it is not empty)", "released file:/srv/old (it was there before the host owned it)",
		"released file:/srv/was (it was there before the host owned it)")
}

func TestPlanShowsHowATextChanges(t *testing.T) {
	l := newLab(t)
	l.applied(aFile("a", "/etc/a", "one\ntwo\nthree\n"), aFile("b", "/etc/b", "x"), aFile("c", "/etc/c", "old secret"), aFile("d", "/etc/d", "1"),
		`{"id": "e", "type": "file", "path": "/etc/e", "content": "was secret", "secret": true}`)
	steps, err := l.engine.Plan(t.Context(), store.SourceFile, document(
		aFile("a", "/etc/a", "one\n2\nthree\n"), `{"id": "b", "type": "file", "path": "/etc/b", "content": "x\u0000y"}`, aFile("new", "/etc/new", "hello\n"),
		`{"id": "c", "type": "file", "path": "/etc/c", "content": "new secret", "secret": true}`,
		`{"id": "d", "type": "file", "path": "/etc/d", "content": "1", "mode": "0600"}`, aFile("e", "/etc/e", "is not")))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"file:/etc/a": "--- file:/etc/a (is)\n+++ file:/etc/a (declared)\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
		// No text, a secret before or now, and what is not about the text.
		"file:/etc/b":   "",
		"file:/etc/new": "--- nothing\n+++ file:/etc/new (declared)\n@@ -0,0 +1 @@\n+hello\n",
		"file:/etc/c":   "", "file:/etc/d": "", "file:/etc/e": "",
	}
	for _, s := range steps {
		if s.Action == Keep || s.Diff != want[s.Key] {
			t.Errorf("%s %s:\n%s\nwant\n%s", s.Action, s.Key, s.Diff, want[s.Key])
		}
	}
}

// What apply would refuse, the plan says, and nothing is begun of it.
func TestPlanSaysWhatNothingMayTakeThePlaceOf(t *testing.T) {
	l := newLab(t)
	if err := os.MkdirAll(filepath.Join(l.root, "srv/d"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := aFile("d", "/srv/d", "1")
	steps, err := l.engine.Plan(t.Context(), store.SourceFile, document(want))
	const why = "a directory is there, and a file does not take its place; move it away by hand"
	if err != nil || steps[0].Action != Conflict || steps[0].Error != why || steps[0].Diff != "" {
		t.Errorf("%+v, %v", steps, err)
	}
	l.want(l.applied(want), "failed file:/srv/d ("+why+")")
	if open, err := l.engine.Store.Intents(); err != nil || len(open) != 0 {
		t.Errorf("%v, %v", open, err)
	}
}
