package declaration

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// judge has somebody else's validator judge documents by the JSON Schema.
func judge(t *testing.T, documents []string) []string {
	t.Helper()
	missing := func(why string) {
		if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		missing("python3 is not here")
	}
	work, err := json.Marshal(map[string]any{"schema": json.RawMessage(JSONSchema()), "documents": documents})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/validate.py")
	cmd.Stdin = bytes.NewReader(work)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	if cmd.ProcessState.ExitCode() == 3 {
		missing("a jsonschema module of python3 that knows draft 2020-12 is not here (Debian: python3-jsonschema)")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, errOut.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(documents) {
		t.Fatalf("%d verdicts for %d documents", len(lines), len(documents))
	}
	return lines
}

func TestTheSchemaTakesWhatParseTakes(t *testing.T) {
	documents := []string{whole, doc("")}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(b))
	}
	for typ, e := range examples {
		for _, members := range e.good {
			documents = append(documents, doc(resource(typ, members)))
		}
		documents = append(documents, doc(resource(typ, e.good[0]+`, "after": [], "take_over": false`)))
	}
	// The normal form is one as well.
	for _, s := range documents {
		d, err := Parse([]byte(s))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		b, err := d.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(b))
	}
	for i, verdict := range judge(t, documents) {
		if verdict != "valid" {
			t.Errorf("%s\n%s", documents[i], verdict)
		}
	}
}

func TestTheSchemaRefusesWhatIsOfAnotherShape(t *testing.T) {
	var documents []string
	for _, c := range wrong {
		if !c.beyond {
			documents = append(documents, c.doc)
		}
	}
	for typ, e := range examples {
		for _, c := range e.bad {
			if !c.beyond {
				documents = append(documents, doc(resource(typ, c.members)))
			}
		}
		for _, more := range []string{`"Name": "x"`, `"take_over": "yes"`, `"after": "a"`, `"after": [1]`, `"after": ["a b"]`} {
			documents = append(documents, doc(resource(typ, e.good[0]+`, `+more)))
		}
		documents = append(documents, doc(`{"id": "a", "type": "`+string(typ)+`"}`))
	}
	for i, verdict := range judge(t, documents) {
		if verdict == "valid" {
			t.Errorf("%s is valid", documents[i])
		}
	}
}

// What is marked as beyond the schema really is, so that no mark hides a hole.
func TestTheSchemaCannotSeeWhatIsMarked(t *testing.T) {
	var documents []string
	for _, c := range wrong {
		if c.beyond && json.Valid([]byte(c.doc)) && utf8.ValidString(c.doc) && !strings.Contains(c.want, "is there twice") && len(c.doc) < 10000 {
			documents = append(documents, c.doc)
		}
	}
	for typ, e := range examples {
		for _, c := range e.bad {
			if c.beyond {
				documents = append(documents, doc(resource(typ, c.members)))
			}
		}
	}
	for i, verdict := range judge(t, documents) {
		if verdict != "valid" {
			t.Errorf("%s\n%s", documents[i], verdict)
		}
	}
}

func TestEachFieldIsExplained(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	fields := 0
	// Only where titles are: the same names stand in conditions as well.
	var walk func(at string, v any)
	walk = func(at string, v any) {
		n, ok := v.(map[string]any)
		if !ok {
			return
		}
		properties, _ := n["properties"].(map[string]any)
		for name, p := range properties {
			m, ok := p.(map[string]any)
			if !ok {
				continue // false: it may not be there
			}
			about, _ := m["description"].(string)
			title, _ := m["title"].(string)
			_, constant := m["const"].(string)
			if !constant && (len(about) < 10 || !strings.HasSuffix(about, ".") && !strings.HasSuffix(about, "}.") || title == "") {
				t.Errorf("%s.%s: %q %q", at, name, title, about)
			}
			fields++
			walk(at+"."+name, p)
			if items, ok := m["items"].(map[string]any); ok && items["allOf"] == nil {
				walk(at+"."+name+"[]", items)
			}
		}
	}
	walk("", schema)
	defs, _ := schema["$defs"].(map[string]any)
	for name, d := range defs {
		if m, _ := d.(map[string]any); m["title"] == nil || m["description"] == nil {
			t.Errorf("%s is not explained", name)
		}
		walk(name, d)
	}
	if len(defs) != 5 || fields < 60 {
		t.Errorf("%d types, %d fields", len(defs), fields)
	}
}
