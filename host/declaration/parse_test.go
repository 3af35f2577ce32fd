package declaration

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const dgst = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"

const whole = `{
  "schema": 1, "name": "control-plane", "generation": 7,
  "resources": [
    {"id": "config", "type": "file", "path": "/etc/example/server.toml", "mode": "0640", "content": "a\n"},
    {"id": "binary", "type": "file", "path": "/usr/local/bin/server", "mode": "0755", "source": "` + dgst + `"},
    {"id": "server", "type": "process", "name": "server", "command": ["/usr/local/bin/server", "serve"],
     "after": ["config", "binary"], "restart_on": ["config", "binary"]}
  ]
}`

// doc wraps resources in a declaration.
func doc(resources string) string {
	return `{"schema": 1, "name": "x", "resources": [` + resources + `]}`
}

func TestParseWhole(t *testing.T) {
	d, err := Parse([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "control-plane" || d.Generation != 7 || len(d.Resources) != 3 {
		t.Fatalf("%+v", d)
	}
	f := d.Resources[0].File
	if f.Mode != 0o640 || *f.Content != "a\n" || f.Owner != "root" || f.Group != "root" {
		t.Errorf("file: %+v", f)
	}
	want := &Process{
		Name: "server", Command: []string{"/usr/local/bin/server", "serve"}, User: "root", WorkingDirectory: "/",
		Restart: RestartAlways, Run: RunService, SuccessCodes: []int{0}, StopSignal: "SIGTERM", StopTimeout: 10, FailureLimit: 5,
	}
	if got := d.Resources[2].Process; !reflect.DeepEqual(got, want) {
		t.Errorf("process: %+v\nwant     %+v", got, want)
	}
	if got := d.Sources(); len(got) != 1 || got[0] != dgst {
		t.Errorf("sources: %v", got)
	}
}

// wrong are documents that are refused. What is marked the JSON Schema cannot
// see: it is no JSON, or no matter of shape, or large.
var wrong = map[string]struct {
	doc, want string
	beyond    bool
}{
	"empty":              {"\n", `is empty`, true},
	"cut":                {`{"schema": 1`, `ends in the middle`, true},
	"not an object":      {`[]`, `is not an object`, false},
	"trailing":           {doc("") + `{}`, `trailing data after the document`, true},
	"not UTF-8":          {"{\"name\": \"\xff\"}", `is not UTF-8`, true},
	"half a surrogate":   {doc(`{"id": "a", "type": "file", "path": "/a", "content": "\\\\\ud83d\u0041"}`), `has half a surrogate pair, which is no character, at line 1, column `, true},
	"the other half":     {doc(`{"id": "a", "type": "file", "path": "/a", "content": "\ud83d\ude00\ude00"}`), `has half a surrogate pair, which is no character, at line 1, column 108`, true},
	"byte order mark":    {"\ufeff" + doc(""), `is not JSON at line 1, column 1`, true},
	"no value":           {"{\n \"schema\": 1,\n \"é\": ]}", `is not JSON at line 3, column 7`, true},
	"duplicate key":      {`{"schema": 1, "schema": 1}`, `schema: is there twice`, true},
	"duplicate key deep": {doc(`{"id": "a", "id": "b"}`), `resources[0].id: is there twice`, true},
	"unknown field":      {`{"schema": 1, "name": "x", "resources": [], "extra": 1}`, `extra: is not known`, false},
	"unknown deep":       {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "Mode": "0644"}`), `resources[0].Mode: is not known`, false},
	"newer schema":       {`{"schema": 2, "what": 1}`, `schema: 2 is newer than the 1 this version reads`, false},
	"no schema":          {`{"name": "x", "resources": []}`, `schema: is missing`, false},
	"no resources":       {`{"schema": 1, "name": "x"}`, `resources: is missing`, false},
	"bad name":           {`{"schema": 1, "name": "A b", "resources": []}`, `name: "A b" is not a name`, false},
	"type":               {doc(`{"id": "a", "type": "flie"}`), `resources[0].type: "flie" is not a type this version knows`, false},
	"mode":               {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "mode": "999"}`), `resources[0].mode: "999" is not an octal file mode`, false},
	"mode is a number":   {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "mode": 644}`), `resources[0].mode: is not a string`, false},
	"no content":         {doc(`{"id": "a", "type": "file", "path": "/a"}`), `resources[0]: needs exactly one of content, source, target, directory`, false},
	"two contents":       {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "target": "b"}`), `resources[0]: needs exactly one of`, false},
	"relative":           {doc(`{"id": "a", "type": "file", "path": "a", "content": ""}`), `resources[0].path: "a" is not absolute`, false},
	"dots":               {doc(`{"id": "a", "type": "file", "path": "/a/../b", "content": ""}`), `resources[0].path: "/a/../b" is not clean (want "/b")`, false},
	"digest":             {doc(`{"id": "a", "type": "file", "path": "/a", "source": "sha256:ABC"}`), `resources[0].source: "sha256:ABC" is not a sha256 digest`, false},
	"digest of another":  {doc(`{"id": "a", "type": "file", "path": "/a", "source": "sha512:` + strings.Repeat("a", 128) + `"}`), `is not a sha256 digest`, false},
	"duplicate id":       {doc(`{"id": "a", "type": "file", "path": "/a", "content": ""}, {"id": "a", "type": "file", "path": "/b", "content": ""}`), `resources[1].id: "a" is the id of resources[0] as well`, true},
	"duplicate thing":    {doc(`{"id": "a", "type": "file", "path": "/a", "content": ""}, {"id": "b", "type": "file", "path": "/a", "content": ""}`), `resources[1]: is about "file:/a", as resources[0] is`, true},
	"missing reference":  {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "after": ["b"]}`), `resources[0].after[0]: names "b", which is not declared`, true},
	"itself":             {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "after": ["a"]}`), `resources[0].after[0]: names the resource itself`, true},
	"circle":             {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "after": ["b"]}, {"id": "b", "type": "file", "path": "/b", "content": "", "after": ["a"]}`), `in a circle: a -> b -> a`, true},
	"secret source":      {doc(`{"id": "a", "type": "file", "path": "/a", "source": "` + dgst + `", "secret": true}`), `resources[0].secret: is for content only`, false},
	"no command":         {doc(`{"id": "a", "type": "process", "name": "a"}`), `resources[0].command: is missing`, false},
	"command relative":   {doc(`{"id": "a", "type": "process", "name": "a", "command": ["a"]}`), `resources[0].command[0]: "a" is not absolute`, false},
	"process name":       {doc(`{"id": "a", "type": "process", "name": "a/../b", "command": ["/a"]}`), `resources[0].name: "a/../b" is not a name`, false},
	"env root":           {doc(`{"id": "a", "type": "process", "name": "a", "command": ["/a"], "env": {"NOX_ROOT": "/"}}`), `resources[0].env.NOX_ROOT: is set by the host`, false},
	"env shim":           {doc(`{"id": "a", "type": "process", "name": "a", "command": ["/a"], "env": {"NOX_SHIM": "/"}}`), `resources[0].env.NOX_SHIM: is set by the host`, false},
	"restart_on a file":  {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "restart_on": []}`), `resources[0].restart_on: is not known`, false},
	"timeout":            {doc(`{"id": "a", "type": "process", "name": "a", "command": ["/a"], "stop_timeout": 1.5}`), `resources[0].stop_timeout: 1.5 is not a whole number`, false},
	"too many values":    {`{"schema": 1, "resources": [` + strings.Repeat(`0,`, 1<<20) + `0]}`, `holds more than 1048576 values`, true},
	"too many resources": {doc(strings.Repeat(`0,`, 20000) + `0`), `resources: are 20001, more than the 20000 allowed`, true},
	"too deep":           {strings.Repeat(`[`, 100000), `nests deeper`, true},
}

func TestEachFaultIsNamedWithItsPath(t *testing.T) {
	for name, c := range wrong {
		_, err := Parse([]byte(c.doc))
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q does not say %q", name, err, c.want)
		}
		if fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: kind %d", name, fault.KindOf(err))
		}
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, err := Parse([]byte(doc(`{"id": "a", "type": "file", "path": "a", "content": "", "mode": "9"}, {"id": "b", "type": "process", "name": "B", "command": ["/b"]}`)))
	var inv *Invalid
	if !errors.As(err, &inv) {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range inv.Faults {
		paths = append(paths, f.Path)
	}
	if got := strings.Join(paths, " "); got != "resources[0].path resources[0].mode resources[1].name" {
		t.Errorf("faults at %s", got)
	}
}

func TestASecretIsNobodyElsesWhenNothingIsSaid(t *testing.T) {
	for more, want := range map[string]uint32{
		``: 0o644, `, "secret": false`: 0o644, `, "secret": true`: 0o600, `, "secret": true, "mode": "0640"`: 0o640,
	} {
		d, err := Parse([]byte(aFile("/a", noContent+more)))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Resources[0].File.Mode; got != want {
			t.Errorf("%s: %04o", more, got)
		}
		again, err := FromSpec("a", d.Resources[0].Spec())
		if err != nil || again.File.Mode != want {
			t.Errorf("%s: %+v, %v", more, again.File, err)
		}
	}
}

func TestOrderIsTheListRefinedByAfter(t *testing.T) {
	file := func(id, after string) string {
		return `{"id": "` + id + `", "type": "file", "path": "/` + id + `", "content": "", "after": [` + after + `]}`
	}
	d, err := Parse([]byte(doc(strings.Join([]string{file("a", `"d"`), file("b", ""), file("c", `"b"`), file("d", "")}, ","))))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, i := range d.Order() {
		ids = append(ids, d.Resources[i].ID)
	}
	if got := strings.Join(ids, ""); got != "dabc" {
		t.Errorf("order %s", got)
	}
}

func TestMarshalIsTheSameDeclaration(t *testing.T) {
	d, err := Parse([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(b)
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if !reflect.DeepEqual(d, again) {
		t.Errorf("%+v\n%+v", d, again)
	}
	for i := range d.Resources {
		r, err := FromSpec(d.Resources[i].ID, d.Resources[i].Spec())
		if err != nil {
			t.Fatal(err)
		}
		if r.Key() != d.Resources[i].Key() {
			t.Errorf("%s became %s", d.Resources[i].Key(), r.Key())
		}
	}
}

func TestSpecSpellsOutDefaults(t *testing.T) {
	short, err := Parse([]byte(doc(`{"id": "a", "type": "file", "path": "/a", "content": "<x>"}`)))
	if err != nil {
		t.Fatal(err)
	}
	// printf '<x>' | sha256sum
	const want = `{"group":"root","mode":"0644","owner":"root","path":"/a","source":"sha256:22305fe27eeb363e92ab4748095301613739505fc2da26e6fbd4971128c82876","type":"file"}`
	if got := string(short.Resources[0].Spec()); got != want {
		t.Errorf("%s", got)
	}
	// As hosts before 1.0 recorded it.
	const old = `{"content":"<x>","group":"root","mode":"0644","owner":"root","path":"/a","type":"file"}`
	if r, err := FromSpec("a", []byte(old)); err != nil || string(r.Spec()) != want {
		t.Errorf("%+v, %v", r.File, err)
	}
}
