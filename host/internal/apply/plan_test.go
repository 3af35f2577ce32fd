package apply

import (
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
