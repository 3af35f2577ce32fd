package declaration

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

const (
	dgst2 = "sha256:fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9"
	dgst3 = "sha256:baa5a0964d3320fbc0c6a922140453c8513ea24ab8fd0577034804a967248096"
)

// refused is a resource, but for its id and type, and the one fault that is
// told of it. beyond: the JSON Schema cannot see it.
type refused struct {
	members, want string
	beyond        bool
}

// examples are the resources of each type that the tests know, but for id and
// type.
var examples = map[Type]struct {
	good []string
	bad  []refused
}{
	TypePackage:   {goodPackages, badPackages},
	TypeUnit:      {goodUnits, badUnits},
	TypeContainer: {goodContainers, badContainers},
	TypeFile:      {goodFiles, badFiles},
	TypeProcess:   {goodProcesses, badProcesses},
}

var goodFiles = []string{
	`"path": "/a", "content": "\\\\ud83d \\ud83d\\ude00 \\\\"`,
	`"path": "/a", "content": ""`, `"path": "/a", "target": "../b"`, `"path": "/a", "directory": true, "mode": "1777"`,
	`"path": "/a.d/..b/...", "source": "` + dgst + `", "mode": "4755", "owner": "1000", "group": "_apt"`,
	`"path": "/a", "content": "x", "secret": true`, `"path": "/a", "target": "b", "secret": false`,
	`"path": "/a", "content": "", "owner": "4294967294", "group": "machine$"`,
}

var badFiles = []refused{
	{`"path": "/a", "content": "", "mode": 644`, `resources[0].mode: is not a string such as "0644"`, false},
	{`"path": "/a", "content": "", "mode": ""`, `resources[0].mode: is empty`, false},
	{`"path": "/a", "content": "", "mode": "10000"`, `resources[0].mode: "10000" is not an octal file mode`, false},
	{`"path": "/a", "content": "", "mode": "-644"`, `resources[0].mode: "-644" is not an octal file mode`, false},
	{`"path": "/a", "content": 1`, `resources[0].content: is not a string`, false},
	{`"path": "/a", "directory": "yes"`, `resources[0].directory: is not true or false`, false},
	{`"path": "/a", "directory": false`, `resources[0].directory: can only be true`, false},
	{`"path": "/a", "target": ""`, `resources[0].target: is empty`, false},
	{`"path": "/a", "target": "b", "mode": "0644"`, `resources[0].mode: has no meaning for a symlink`, false},
	{`"path": "/a", "source": ""`, `resources[0].source: is empty`, false},
	{`"path": ["/a"], "content": ""`, `resources[0].path: is not a string`, false},
	{`"path": "/", "directory": true`, `resources[0].path: is the root directory`, false},
	{`"path": "/a/", "directory": true`, `resources[0].path: "/a/" is not clean (want "/a")`, false},
	{`"path": "/a\u0000", "content": ""`, `resources[0].path: holds a NUL byte`, false},
	{`"path": "/a", "content": "", "owner": ""`, `resources[0].owner: is empty`, false},
	{`"path": "/a", "content": "", "owner": 0`, `resources[0].owner: is not a string`, false},
}

var goodProcesses = []string{
	`"name": "a", "command": ["/a", "", "b"]`, `"name": "a", "command": ["/a"], "env": {"A": "", "B.c": "x=y"}, "success_codes": []`,
	`"name": "a", "command": ["/a"], "rollback": false`,
	`"name": "a", "command": ["/a"], "run": "once", "restart": "never", "working_directory": "/srv", "stop_signal": "SIGINT", "stop_timeout": 1, "failure_limit": 1`,
}

var badProcesses = []refused{
	{`"name": "a", "command": []`, `resources[0].command: is empty`, false},
	{`"name": "a", "command": ["/a", 1]`, `resources[0].command[1]: is not a string`, false},
	{`"name": "a", "command": ["/a", "b\u0000"]`, `resources[0].command[1]: holds a NUL byte`, false},
	{`"name": "a", "command": "/a"`, `resources[0].command: is not a list`, false},
	{`"name": "a", "command": ["/a"], "env": {"A=B": ""}`, `resources[0].env["A=B"]: "A=B" is not the name of a variable`, false},
	{`"name": "a", "command": ["/a"], "env": {"": ""}`, `resources[0].env: holds an empty name`, false},
	{`"name": "a", "command": ["/a"], "env": {"A": 1}`, `resources[0].env.A: is not a string`, false},
	{`"name": "a", "command": ["/a"], "success_codes": [0, 256]`, `resources[0].success_codes[1]: is not an exit status from 0 to 255`, false},
	{`"name": "a", "command": ["/a"], "restart": "sometimes"`, `resources[0].restart: "sometimes" is not always, on-failure or never`, false},
	{`"name": "a", "command": ["/a"], "stop_signal": "SIGSTOP"`, `resources[0].stop_signal: "SIGSTOP" is not SIGTERM, SIGINT,`, false},
	{`"name": "a", "command": ["/a"], "user": "4294967295"`, `resources[0].user: "4294967295" is not an account number`, true},
	{`"name": "a", "command": ["/a"], "user": "a b"`, `resources[0].user: "a b" is not an account`, false},
	{`"name": "a", "command": ["/a"], "failure_limit": 0`, `resources[0].failure_limit: 0 is not a whole number from 1 to 1000`, false},
	{`"name": "a", "command": ["/a"], "rollback": 1`, `resources[0].rollback: is not true or false`, false},
	{`"name": "a", "command": ["/a"], "rollback": true`, `resources[0].rollback: needs the program "/a" to be a file of this declaration that has a source`, true},
	{`"name": "a", "command": ["/a"], "rollback": true, "run": "once"`, `resources[0].rollback: is for a service`, false},
	{`"name": "a", "command": ["/a"], "rollback": true, "restart": "never"`, `resources[0].rollback: has no meaning for what is never started again`, false},
	{`"name": "mesh-host", "command": ["/a"]`, `resources[0].name: "mesh-host" is the host's own name`, true},
}

func resource(t Type, members string) string {
	return `{"id": "a", "type": "` + string(t) + `", ` + members + `}`
}

func faultsOf(err error) []Fault {
	var inv *Invalid
	errors.As(err, &inv)
	if inv == nil {
		return nil
	}
	return inv.Faults
}

func TestGoodResourcesComeBackTheSame(t *testing.T) {
	for typ, e := range examples {
		for _, members := range e.good {
			d, err := Parse([]byte(doc(resource(typ, members))))
			if err != nil {
				t.Errorf("%s: %v", members, err)
				continue
			}
			b, err := d.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse(b)
			if err != nil || !reflect.DeepEqual(d, again) {
				t.Errorf("%s\n%s\n%v", members, b, err)
			}
			r := &d.Resources[0]
			kept, err := FromSpec("a", r.Spec())
			if err != nil || !reflect.DeepEqual(recorded(*r), kept) {
				t.Errorf("%s: %v\n%+v\n%+v", r.Spec(), err, *r, kept)
			}
			if f := r.File; f != nil && f.Content != nil && *f.Content != "" && strings.Contains(string(r.Spec()), *f.Content) {
				t.Errorf("the text is recorded: %s", r.Spec())
			}
		}
	}
}

// recorded is the resource as a record names it: a text by its digest.
func recorded(r Resource) Resource {
	if f := r.File; f != nil && f.Content != nil {
		r.File = &File{
			Path: f.Path, Source: digest.FromString(*f.Content), Mode: f.Mode, Owner: f.Owner, Group: f.Group, Secret: f.Secret,
		}
	}
	return r
}

func TestOneFaultIsToldOfOneMistake(t *testing.T) {
	for typ, e := range examples {
		for _, c := range e.bad {
			_, err := Parse([]byte(doc(resource(typ, c.members))))
			if list := faultsOf(err); len(list) != 1 || !strings.HasPrefix(list[0].String(), c.want) {
				t.Errorf("%s: %v", c.members, err)
			}
		}
	}
}

// What all types have in common, each of them has.
func TestEveryTypeIsHeldToTheSame(t *testing.T) {
	for typ, e := range examples {
		good := e.good[0]
		if _, err := Parse([]byte(doc(resource(typ, good+`, "after": [], "take_over": true`)))); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
		for more, want := range map[string]string{
			`, "Name": "x"`:          `resources[0].Name: is not known`,
			`, "take_over": "yes"`:   `resources[0].take_over: is not true or false`,
			`, "after": "a"`:         `resources[0].after: is not a list`,
			`, "after": [1]`:         `resources[0].after[0]: is not a string`,
			`, "after": ["nobody"]`:  `resources[0].after[0]: names "nobody", which is not declared`,
			`, "id": "b"`:            `resources[0].id: is there twice`,
			`, "colour of it": null`: `resources[0]["colour of it"]: is not known`,
		} {
			_, err := Parse([]byte(doc(resource(typ, good+more))))
			if list := faultsOf(err); len(list) != 1 || list[0].String() != want || list[0].Path == "" {
				t.Errorf("%s%s: %v", typ, more, err)
			}
		}
		if _, err := Parse([]byte(doc(`{"id": "a", "type": "` + string(typ) + `"}`))); len(faultsOf(err)) == 0 {
			t.Errorf("an empty %s: %v", typ, err)
		}
		_, err := Parse([]byte(doc(resource(typ, good+`, "restart_on": []`))))
		if restarts := slices.Contains([]Type{TypeProcess, TypeContainer, TypeUnit}, typ); restarts != (err == nil) {
			t.Errorf("restart_on of a %s: %v", typ, err)
		}
	}
}

func TestTwoThatClaimTheSameAreBothNamed(t *testing.T) {
	const (
		web     = `{"id": "one", "type": "process", "name": "web", "command": ["/web"]}`
		timer   = `{"id": "one", "type": "unit", "name": "b.timer", "content": "[Timer]\n"}`
		tuned   = `{"id": "one", "type": "unit", "name": "b.timer", "drop_ins": {"x.conf": ""}}`
		masked  = `{"id": "one", "type": "unit", "name": "b.timer", "masked": true}`
		started = `{"id": "one", "type": "unit", "name": "b.timer", "active": true, "masked": false}`
	)
	container := func(id, name, ports string) string {
		return `{"id": "` + id + `", "type": "container", "name": "` + name + `", "image": "` + dgst + `", "ports": [` + ports + `]}`
	}
	at := func(p string) string {
		return `{"id": "two", "type": "file", "path": "` + p + `", "content": ""}`
	}
	for _, c := range []struct{ one, two, claim string }{
		{at("/x"), at("/x"), "file:/x"},
		{`{"id": "one", "type": "package", "name": "a"}`, `{"id": "two", "type": "package", "name": "a", "version": "2"}`, "package:a"},
		{timer, `{"id": "two", "type": "unit", "name": "b.timer", "enabled": true}`, "unit:b.timer"},
		{web, `{"id": "two", "type": "process", "name": "web", "command": ["/other"]}`, "process:web"},
		{container("one", "web", ""), container("two", "web", ""), "container:web"},
		{timer, at("/etc/systemd/system/b.timer"), "file:/etc/systemd/system/b.timer"},
		{masked, at("/etc/systemd/system/b.timer"), "file:/etc/systemd/system/b.timer"},
		{tuned, at("/etc/systemd/system/b.timer.d/x.conf"), "file:/etc/systemd/system/b.timer.d/x.conf"},
		{web, at("/etc/systemd/system/nox-web.service"), "file:/etc/systemd/system/nox-web.service"},
		{web, `{"id": "two", "type": "unit", "name": "nox-web.service", "active": false}`, "unit:nox-web.service"},
		{container("one", "first", `{"host": 80, "container": 1}`), container("two", "second", `{"host": 80, "container": 2}`), "port:80/tcp"},
		{container("one", "first", ""), container("two", "second", `{"host": 80, "container": 2}`), ""},
		{container("one", "web", ""), web, ""},
		{started, at("/etc/systemd/system/b.timer"), ""},
		{tuned, at("/etc/systemd/system/b.timer.d/y.conf"), ""},
		{tuned, at("/etc/systemd/system/b.timer"), ""},
		{
			container("one", "first", `{"host": 80, "container": 1}`),
			container("two", "second", `{"host": 80, "container": 1, "protocol": "udp"}, {"host": 80, "container": 1, "address": "::1"}`), "",
		},
	} {
		one := strings.Replace(c.one, `"two"`, `"one"`, 1)
		two := strings.Replace(c.two, `"one"`, `"two"`, 1)
		for _, pair := range [][2]string{{one, two}, {two, one}} {
			_, err := Parse([]byte(doc(pair[0] + ", " + pair[1])))
			list := faultsOf(err)
			if c.claim == "" {
				if err != nil {
					t.Errorf("%s and %s: %v", one, two, err)
				}
				continue
			}
			if len(list) != 1 || list[0].Path != "resources[1]" || !strings.HasPrefix(list[0].Text, `is about "`+c.claim+`", as resources[0] is (`) ||
				!strings.Contains(list[0].Text, `"one"`) || !strings.Contains(list[0].Text, `"two"`) {
				t.Errorf("%s and %s: %v", one, two, err)
			}
		}
	}
}

// A resource that cannot be read does not move the paths of the others, and
// what waits for it is not told that it is not there.
func TestAFaultyResourceKeepsItsPlace(t *testing.T) {
	_, err := Parse([]byte(doc(`{"id": "a", "type": "flie", "x": 1}, 7, {"id": "b", "type": "file", "path": "/b", "content": "", "mode": "9", "after": ["a", "c"]}, {"id": "b", "type": "file"}`)))
	var got []string
	for _, f := range faultsOf(err) {
		got = append(got, f.Path)
	}
	want := []string{"resources[0].type", "resources[1]", "resources[2].mode", "resources[3].path", "resources[3]", "resources[3].id", "resources[2].after[1]"}
	if !slices.Equal(got, want) {
		t.Errorf("faults at %q\nwant      %q", got, want)
	}
}

func TestFaultsAreBounded(t *testing.T) {
	long := strings.Repeat("x y", 1000)
	_, err := Parse([]byte(doc(`{"id": "` + long + `", "type": "` + long + `", "after": ["` + long + `"]}`)))
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("a fault of %d bytes", len(err.Error()))
	}
	_, err = Parse([]byte(doc(strings.TrimSuffix(strings.Repeat(`{"type": 1},`, 5000), ","))))
	if n := len(faultsOf(err)); n != maxFaults {
		t.Errorf("%d faults", n)
	}
	const secret = "hunter2"
	_, err = Parse([]byte(doc(resource(TypeFile, `"path": "/a", "content": ["`+secret+`"], "secret": true`) + `, ` +
		resource(TypeProcess, `"name": "a", "command": ["/a"], "env": {"A": "`+secret+`\u0000"}`))))
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
}

func TestTheExamplesOfTheDocumentation(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if filepath.Base(name) == "complete.json" {
			seen := map[Type]bool{}
			for _, r := range d.Resources {
				seen[r.Type] = true
			}
			if len(seen) != len(examples) {
				t.Errorf("%s holds only the types %v", name, seen)
			}
		}
	}
}

func TestWhatAKindNeedsFromTheContentStore(t *testing.T) {
	d, err := Parse([]byte(doc(strings.Join([]string{
		`{"id": "a", "type": "package", "name": "a", "source": "` + dgst + `", "signature": "` + dgst2 + `"}`,
		`{"id": "b", "type": "unit", "name": "b.service", "source": "` + dgst3 + `"}`,
		`{"id": "c", "type": "container", "name": "cc", "image": "` + dgst2 + `"}`,
		`{"id": "d", "type": "container", "name": "dd", "image": "docker.io/library/d@` + strings.Replace(dgst, "2c", "2d", 1) + `"}`,
		`{"id": "e", "type": "package", "name": "e"}`,
	}, ", "))))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(d.Sources())
	if want := `["` + dgst + `","` + dgst2 + `","` + dgst3 + `"]`; string(got) != want {
		t.Errorf("sources %s\nwant    %s", got, want)
	}
}
