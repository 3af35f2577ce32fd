package module_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
)

func TestWhatTheControlPlaneNeeds(t *testing.T) {
	is := func(want string) func(string) bool { return func(p string) bool { return p == want } }
	self := module.Program{Command: is("/bin/c"), State: is("/var/c"), Machine: "m1"}
	first, clone, other := node("first"), node("clone"), node("other")
	first.Profile.MachineID, other.Profile.MachineID = "m1", "m2"
	m := newMesh(t, first, clone, other)
	process := func(name string, command ...string) string {
		return fmt.Sprintf(`{"id":%q,"type":"process","name":%[1]q,"command":["%s"]}`, name, strings.Join(command, `","`))
	}
	lostProcess := []module.Need{{Key: "process:c", Module: "cp", Command: []string{"/bin/c", "run"}}}
	doc := func(resources ...string) string {
		return `{"schema":1,"name":"x","resources":[` + strings.Join(resources, ",") + `]}`
	}
	binary, state1 := `{"id":"b","type":"file","path":"/bin/c","content":"x"}`, `{"id":"s","type":"file","path":"/var/c","directory":true}`
	runners := func() (out map[string]module.Runner) {
		t.Helper()
		if err := m.View(func(tx *state.Tx) (err error) { out, err = module.Runners(tx, self); return err }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	m.must("cp", doc(process("c", "/bin/c", "run"), binary, state1), "every")
	before := runners()
	if len(before) != 2 || !before["id-first"].Runs() || !before["id-clone"].Runs() {
		t.Errorf("first, and one of no known machine: %+v", before)
	}
	for name, c := range map[string]struct {
		doc  string
		lost []module.Need
	}{
		"the same":        {doc(process("c", "/bin/c", "run"), binary, state1), nil},
		"one more":        {doc(process("c", "/bin/c", "run"), process("d", "/bin/c", "version"), binary, state1), nil},
		"another name":    {doc(process("d", "/bin/c", "run"), binary, state1), lostProcess},
		"another command": {doc(process("c", "/bin/c", "version"), binary, state1), lostProcess},
		"no arguments":    {doc(process("c", "/bin/c"), binary, state1), lostProcess},
		"no process":      {doc(binary, state1), lostProcess},
		"another program": {doc(process("c", "/bin/d"), binary, state1), lostProcess},
		"no binary":       {doc(process("c", "/bin/c", "run"), state1), []module.Need{{Key: "file:/bin/c", Module: "cp"}}},
		"no state":        {doc(process("c", "/bin/c", "run"), binary), []module.Need{{Key: "file:/var/c", Module: "cp"}}},
	} {
		m.must("cp", c.doc)
		if lost := before["id-first"].Without(runners()); !reflect.DeepEqual(lost, c.lost) {
			t.Errorf("%s: %+v, want %+v", name, lost, c.lost)
		}
	}
	m.must("cp", doc(binary), "node=other")
	if got := runners(); len(got) != 0 {
		t.Errorf("the same path on another machine: %+v", got)
	}
}
