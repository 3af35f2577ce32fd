package declaration

import (
	"bytes"
	"strings"
	"testing"
)

func TestRollbackNeedsAProgramThatIsAFileWithASource(t *testing.T) {
	const web = `{"id": "web", "type": "process", "name": "web", "command": ["/web", "-v"], "rollback": true}`
	for name, c := range map[string]struct{ more, want string }{
		"declared before": {`{"id": "b", "type": "file", "path": "/web", "source": "` + dgst + `"}, ` + web, ""},
		"declared after":  {web + `, {"id": "b", "type": "file", "path": "/web", "source": "` + dgst + `"}`, ""},
		"not declared":    {web, `resources[0].rollback: needs the program "/web" to be a file of this declaration that has a source`},
		"another path":    {web + `, {"id": "b", "type": "file", "path": "/web2", "source": "` + dgst + `"}`, `resources[0].rollback: needs the program "/web" to be a file`},
		"content":         {web + `, {"id": "b", "type": "file", "path": "/web", "content": "x"}`, `resources[0].rollback: needs the program "/web" to have a source, which "b" has not`},
		"a symlink":       {web + `, {"id": "b", "type": "file", "path": "/web", "target": "x"}`, `resources[0].rollback: needs the program "/web" to have a source, which "b" has not`},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Parse([]byte(doc(c.more)))
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "":
				for i := range d.Resources {
					if p := d.Resources[i].Process; p != nil && (d.Program(p) == nil || d.Program(p).ID != "b") {
						t.Errorf("the program is %+v", d.Program(p))
					}
				}
			case len(faultsOf(err)) != 1 || !strings.HasPrefix(faultsOf(err)[0].String(), c.want):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// What does not say so is written as it always was: nothing is restarted for it.
func TestRollbackThatIsNotAskedForIsNotInTheSpec(t *testing.T) {
	d, err := Parse([]byte(doc(`{"id": "web", "type": "process", "name": "web", "command": ["/web"], "rollback": false}`)))
	if err != nil {
		t.Fatal(err)
	}
	if spec := d.Resources[0].Spec(); bytes.Contains(spec, []byte("rollback")) {
		t.Errorf("the spec is %s", spec)
	}
}
