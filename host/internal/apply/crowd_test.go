package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func manyFiles(n int) []string {
	var out []string
	for i := range n {
		out = append(out, aFile(fmt.Sprintf("f%d", i), fmt.Sprintf("/etc/d%d/f%d", i%10, i), fmt.Sprintf("content %d %4096d", i, i)))
	}
	return out
}

func BenchmarkFirstPass(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		l := newLab(b)
		must(b, l.accept(manyFiles(1000)...))
		b.StartTimer()
		if _, err := l.engine.Reconcile(b.Context(), "test", false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSecondPass(b *testing.B) {
	l := newLab(b)
	must(b, l.accept(manyFiles(1000)...))
	for range 2 {
		if _, err := l.engine.Reconcile(b.Context(), "test", false); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := l.engine.Reconcile(b.Context(), "test", false); err != nil {
			b.Fatal(err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestACrowdOfFilesIsAppliedAndGivenBackAsOneByOne(t *testing.T) {
	l := newLab(t)
	files := append(manyFiles(300), `{"id": "d", "type": "file", "path": "/etc/own", "directory": true}`, aFile("in", "/etc/own/x", "1"))
	var applied, unchanged []string
	for i := range 300 {
		applied = append(applied, fmt.Sprintf("applied file:/etc/d%d/f%d", i%10, i))
	}
	applied = append(applied, "applied file:/etc/own", "applied file:/etc/own/x")
	for _, a := range applied {
		unchanged = append(unchanged, strings.Replace(a, "applied", "unchanged", 1))
	}
	l.want(l.applied(files...), applied...)
	if got := l.read("etc/d7/f17"); got != fmt.Sprintf("content 17 %4096d", 17) {
		t.Errorf("content %.20q", got)
	}
	l.restart()
	l.want(l.pass(), unchanged...)
	if n := l.engine.Store.Writes(); n != 0 {
		t.Errorf("the second pass wrote %d pages", n)
	}
	l.applied()
	es, err := os.ReadDir(filepath.Join(l.root, "etc"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left behind: %v, %v", es, err)
	}
	if r, _ := l.engine.Store.Records(); len(r) != 0 {
		t.Errorf("%d records left", len(r))
	}
}

func TestOneBadFileInACrowdFailsAlone(t *testing.T) {
	l := newLab(t)
	files := manyFiles(60)
	must(t, os.MkdirAll(filepath.Join(l.root, "etc/d3/f13/full"), 0o755))
	files = append(files, `{"id": "waits", "type": "file", "path": "/etc/waits", "content": "", "after": ["f13"]}`)
	got := strings.Split(l.applied(files...), "\n")
	for i, line := range got {
		want := fmt.Sprintf("applied file:/etc/d%d/f%d", i%10, i)
		switch {
		case i == 13:
			want = "failed file:/etc/d3/f13 ("
		case i == 60:
			want = `skipped file:/etc/waits (waits for "f13", which is failed)`
		}
		if !strings.HasPrefix(line, want) {
			t.Errorf("%s, want %s", line, want)
		}
	}
	if open, _ := l.engine.Store.Intents(); len(open) > 1 {
		t.Errorf("%d intents are open", len(open))
	}
}

func TestF01TheRestGoesOnAndTheNextPassSucceeds(t *testing.T) {
	l := newLab(t)
	path := filepath.Join(l.root, "etc/b")
	must(t, errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("theirs"), 0o644)))
	if out, err := exec.Command("chattr", "+i", path).CombinedOutput(); err != nil {
		t.Skipf("chattr: %v %s", err, out)
	}
	free := func() error { return exec.Command("chattr", "-i", path).Run() }
	t.Cleanup(func() { _ = free() })
	var files []string
	for _, name := range []string{"a", "b", "c"} {
		files = append(files, aFile(name, "/etc/"+name, name))
	}
	got := strings.Split(l.applied(files...), "\n")
	if len(got) != 3 || got[0] != "applied file:/etc/a" || !strings.HasPrefix(got[1], "failed file:/etc/b (") ||
		!strings.Contains(got[1], "immutable (chattr -i)") || got[2] != "applied file:/etc/c" {
		t.Errorf("%q", got)
	}
	if es, err := os.ReadDir(filepath.Dir(path)); err != nil || len(es) != 3 || l.read("etc/b") != "theirs" {
		t.Errorf("there is %v, %v", es, err)
	}
	must(t, free())
	l.want(l.pass(), "unchanged file:/etc/a", "applied file:/etc/b", "unchanged file:/etc/c")
	l.want(l.pass(), "unchanged file:/etc/a", "unchanged file:/etc/b", "unchanged file:/etc/c")
}
