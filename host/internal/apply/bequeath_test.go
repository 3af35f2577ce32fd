package apply

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/file"
)

// inTurn is the file kind, with one of those that are removed at the same time held
// back until another is gone.
type inTurn struct {
	*file.Kind
	first, then string
	gone        chan struct{}
}

func (k inTurn) Together(n int) resource.Kind {
	k.Kind = k.Kind.Together(n).(*file.Kind)
	return k
}

func (k inTurn) Remove(ctx context.Context, r resource.Record) (declaration.Outcome, string, error) {
	if r.Key == k.then {
		<-k.gone
	}
	outcome, note, err := k.Kind.Remove(ctx, r)
	if r.Key == k.first {
		close(k.gone)
	}
	return outcome, note, err
}

// The directory was made for the first, which is gone already and so is done with at
// once; the last that lies in it takes it along.
func TestADirectoryGoesWithTheLastOfThoseThatGoAtOnce(t *testing.T) {
	l := newLab(t)
	must(t, os.MkdirAll(filepath.Join(l.root, "srv"), 0o755))
	const a = `{"id": "a", "type": "file", "path": "/srv/w/a", "directory": true}`
	l.applied(a)
	l.applied(a, aFile("b", "/srv/w/b", "1"))
	must(t, os.Remove(filepath.Join(l.root, "srv/w/a")))
	l.engine.Kinds[declaration.TypeFile] = inTurn{
		Kind: l.engine.Kinds[declaration.TypeFile].(*file.Kind), first: "file:/srv/w/a", then: "file:/srv/w/b", gone: make(chan struct{}),
	}
	l.want(l.applied(), "removed file:/srv/w/b", "removed file:/srv/w/a")
	if left, err := os.ReadDir(filepath.Join(l.root, "srv")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// What is gone and not forgotten would be removed again when somebody makes it.
func TestH09NothingIsRemovedThatCannotBeForgotten(t *testing.T) {
	l := newLab(t)
	l.applied(aFile("a", "/etc/a", "1"), aFile("b", "/etc/b", "1"))
	must(t, l.accept(aFile("a", "/etc/a", "1")))
	writable := l.readOnly()
	l.restart()
	if _, err := l.engine.Reconcile(t.Context(), "test", false); err == nil {
		t.Error("who declares what could be recorded")
	}
	if got := l.read("/etc/b"); got != "1" {
		t.Errorf("it holds %q", got)
	}
	writable()
	l.want(l.pass(), "removed file:/etc/b", "unchanged file:/etc/a")
}
