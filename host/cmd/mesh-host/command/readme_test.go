package command

import (
	"os"
	"regexp"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestTheReadmesDeclarationRunsAnywhere: it is the first that a newcomer applies,
// so what it starts is in it. It named a program that no machine has.
func TestTheReadmesDeclarationRunsAnywhere(t *testing.T) {
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d declarations, want 1", len(blocks))
	}
	d, err := declaration.Parse(blocks[0][1])
	if err != nil {
		t.Fatal(err)
	}
	programs, started := map[string]bool{}, 0
	for _, r := range d.Resources {
		if r.File != nil && r.File.Mode == 0o755 {
			programs[r.File.Path] = true
		}
	}
	for _, r := range d.Resources {
		if r.Process == nil {
			continue
		}
		if started++; !programs[r.Process.Command[0]] {
			t.Errorf("%q is not in it", r.Process.Command[0])
		}
	}
	if started == 0 {
		t.Error("it starts nothing")
	}
	m := newMachine(t)
	m.host(fault.Todo, "plan", m.put("tmp/readme.json", string(blocks[0][1])))
}
