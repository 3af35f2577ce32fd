package apply

import (
	"fmt"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestAcceptRefusesAndKeepsTheOneInForce(t *testing.T) {
	l := newLab(t)
	l.mesh = "M"
	link := func(mesh string, epoch, generation uint64) error {
		doc := fmt.Sprintf(`{"schema": 1, "name": "n", "generation": %d, "resources": []}`, generation)
		_, err := l.engine.Accept(t.Context(), store.Wanted{Source: store.SourceLink, Mesh: mesh, Epoch: epoch, Document: []byte(doc)}, false)
		return err
	}
	if err := link("M", 2, 7); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"an older generation": link("M", 2, 6),
		"an older epoch":      link("M", 1, 9),
		"another mesh":        link("X", 3, 1),
		"a person":            l.accept(),
		"not a declaration": func() error {
			_, err := l.engine.Accept(t.Context(), store.Wanted{Source: store.SourceLink, Mesh: "M", Epoch: 9, Document: []byte("{")}, false)
			return err
		}(),
	} {
		if fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w, _ := l.engine.Store.Wanted(); w.Epoch != 2 || w.Generation != 7 {
		t.Errorf("in force: %+v", w)
	}
	if err := link("M", 3, 1); err != nil {
		t.Errorf("a new epoch begins a new count: %v", err)
	}
}

func TestAnOlderDeclarationIsTakenWhenThatIsSaid(t *testing.T) {
	l := newLab(t)
	accept := func(generation int, older bool) error {
		doc := fmt.Sprintf(`{"schema": 1, "name": "n", "generation": %d, "resources": []}`, generation)
		_, err := l.engine.Accept(t.Context(), store.Wanted{Source: store.SourceBundle, Document: []byte(doc)}, older)
		return err
	}
	if err := accept(7, false); err != nil {
		t.Fatal(err)
	}
	if err := accept(6, false); fault.KindOf(err) != fault.Refused {
		t.Errorf("older: %v", err)
	}
	if err := accept(6, true); err != nil {
		t.Errorf("older, and said so: %v", err)
	}
}
