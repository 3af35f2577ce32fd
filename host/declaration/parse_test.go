package declaration

import (
	"encoding/json"
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

func TestEachFaultIsNamedWithItsPath(t *testing.T) {
	for name, c := range map[string]struct{ doc, want string }{
		"empty":              {``, `ends in the middle, at byte 0`},
		"cut":                {`{"schema": 1`, `ends in the middle`},
		"not an object":      {`[]`, `is not an object`},
		"trailing":           {doc("") + `{}`, `trailing data after the document`},
		"not UTF-8":          {"{\"name\": \"\xff\"}", `is not UTF-8`},
		"byte order mark":    {"\ufeff" + doc(""), `is not JSON at byte`},
		"duplicate key":      {`{"schema": 1, "schema": 1}`, `schema: is there twice`},
		"duplicate key deep": {doc(`{"id": "a", "id": "b"}`), `resources[0].id: is there twice`},
		"unknown field":      {`{"schema": 1, "name": "x", "resources": [], "extra": 1}`, `extra: is not known`},
		"unknown deep":       {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "Mode": "0644"}`), `resources[0].Mode: is not known`},
		"newer schema":       {`{"schema": 2, "what": 1}`, `schema: 2 is newer than the 1 this version reads`},
		"no schema":          {`{"name": "x", "resources": []}`, `schema: is missing`},
		"no resources":       {`{"schema": 1, "name": "x"}`, `resources: is missing`},
		"bad name":           {`{"schema": 1, "name": "A b", "resources": []}`, `name: "A b" is not a name`},
		"type":               {doc(`{"id": "a", "type": "flie"}`), `resources[0].type: "flie" is not a type this version knows`},
		"mode":               {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "mode": "999"}`), `resources[0].mode: "999" is not an octal file mode`},
		"mode is a number":   {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "mode": 644}`), `resources[0].mode: is not a string`},
		"no content":         {doc(`{"id": "a", "type": "file", "path": "/a"}`), `resources[0]: needs exactly one of content, source, target, directory`},
		"two contents":       {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "target": "b"}`), `resources[0]: needs exactly one of`},
		"relative":           {doc(`{"id": "a", "type": "file", "path": "a", "content": ""}`), `resources[0].path: "a" is not absolute`},
		"dots":               {doc(`{"id": "a", "type": "file", "path": "/a/../b", "content": ""}`), `resources[0].path: "/a/../b" is not clean (want "/b")`},
		"digest":             {doc(`{"id": "a", "type": "file", "path": "/a", "source": "sha256:ABC"}`), `resources[0].source: "sha256:ABC" is not a sha256 digest`},
		"digest of another":  {doc(`{"id": "a", "type": "file", "path": "/a", "source": "sha512:` + strings.Repeat("a", 128) + `"}`), `is not a sha256 digest`},
		"duplicate id":       {doc(`{"id": "a", "type": "file", "path": "/a", "content": ""}, {"id": "a", "type": "file", "path": "/b", "content": ""}`), `resources[1].id: "a" is the id of resources[0] as well`},
		"duplicate thing":    {doc(`{"id": "a", "type": "file", "path": "/a", "content": ""}, {"id": "b", "type": "file", "path": "/a", "content": ""}`), `resources[1]: is about "file:/a", as resources[0] is`},
		"missing reference":  {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "after": ["b"]}`), `resources[0].after[0]: names "b", which is not declared`},
		"itself":             {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "after": ["a"]}`), `resources[0].after[0]: names the resource itself`},
		"circle":             {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "after": ["b"]}, {"id": "b", "type": "file", "path": "/b", "content": "", "after": ["a"]}`), `in a circle: a -> b -> a`},
		"secret source":      {doc(`{"id": "a", "type": "file", "path": "/a", "source": "` + dgst + `", "secret": true}`), `resources[0].secret: is for content only`},
		"no command":         {doc(`{"id": "a", "type": "process", "name": "a"}`), `resources[0].command: is missing`},
		"command relative":   {doc(`{"id": "a", "type": "process", "name": "a", "command": ["a"]}`), `resources[0].command[0]: "a" is not absolute`},
		"process name":       {doc(`{"id": "a", "type": "process", "name": "a/../b", "command": ["/a"]}`), `resources[0].name: "a/../b" is not a name`},
		"env root":           {doc(`{"id": "a", "type": "process", "name": "a", "command": ["/a"], "env": {"NOX_ROOT": "/"}}`), `resources[0].env.NOX_ROOT: is set by the host`},
		"restart_on a file":  {doc(`{"id": "a", "type": "file", "path": "/a", "content": "", "restart_on": []}`), `resources[0].restart_on: is not known`},
		"timeout":            {doc(`{"id": "a", "type": "process", "name": "a", "command": ["/a"], "stop_timeout": 1.5}`), `resources[0].stop_timeout: 1.5 is not a whole number`},
		"too deep":           {strings.Repeat(`[`, 100000), `nests deeper`},
	} {
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

func TestHostsOwnIsRefusedByName(t *testing.T) {
	for _, p := range []string{
		"/etc/systemd/system/mesh-host.service",
		"/usr/lib/systemd/system/mesh-host.service",
		"/etc/systemd/system/mesh-host.service.d/override.conf",
		"/etc/systemd/system/multi-user.target.wants/mesh-host.service",
		"/etc/systemd/system/mesh-host@x.service",
		"/var/lib/nox-mesh",
		"/var/lib/nox-mesh/host/identity.json",
		"/var/lib/nox-mesh/launcher/mesh-host",
		"/etc/nox-mesh/trust/evil.pub",
		"/usr/local/share/nox-mesh/trust/1.root.json",
		"/run/nox-mesh/host.sock",
	} {
		_, err := Parse([]byte(doc(`{"id": "a", "type": "file", "path": "` + p + `", "content": ""}`)))
		if err == nil || !strings.Contains(err.Error(), p) || !strings.Contains(err.Error(), "the installation owns") {
			t.Errorf("%s: %v", p, err)
		}
	}
	for name, r := range map[string]string{
		"process": `{"id": "a", "type": "process", "name": "mesh-host", "command": ["/a"]}`,
		"alias":   `{"id": "a", "type": "file", "path": "/etc/systemd/system/x.service", "content": "[Install]\nAlias=mesh-host.service\n"}`,
	} {
		if _, err := Parse([]byte(doc(r))); err == nil || !strings.Contains(err.Error(), "mesh-host") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, p := range []string{"/usr/local/bin/mesh-host", "/usr/bin/mesh-host", "/etc/nox-mesh/controller.toml", "/var/lib/nox-mesh-controller"} {
		if _, err := Parse([]byte(doc(`{"id": "a", "type": "file", "path": "` + p + `", "content": ""}`))); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func aFile(p, more string) string {
	return doc(`{"id": "a", "type": "file", "path": "` + p + `", ` + more + `}`)
}

const noContent = `"content": ""`

func TestTheHostsUnitIsRefusedInEverySpelling(t *testing.T) {
	const dir = "/etc/systemd/system/"
	for _, c := range [][2]string{
		{dir + "mesh-.service.d/x.conf", noContent},
		{dir + "service.d/x.conf", noContent},
		{dir + "service.d", `"directory": true`},
		{"/run/systemd/transient/mesh-host.service.d/x.conf", noContent},
		{"/usr/local/lib/systemd/system/mesh-.service.d/x.conf", noContent},
		{dir + "mesh-host.service.requires/evil.service", `"target": "../evil.service"`},
		{dir + "mesh-host.service.wants/evil.service", `"target": "../evil.service"`},
		{dir + "mesh-host.service.upholds/evil.service", `"target": "../evil.service"`},
		{dir + "mesh-host.socket", noContent},
		{dir + "mesh-host.timer", noContent},
		{dir + "mesh-host.path", noContent},
		{dir + "mesh-host@.service", noContent},
		{dir + "mesh-host@a.socket.d/x.conf", noContent},
		{dir + "zz.service", `"target": "mesh-host.service"`},
		{dir + "zz.service", `"target": "/usr/lib/systemd/system/mesh-host.service"`},
		{dir + "a.target.wants/zz.service", `"target": "../mesh-host.service"`},
		{dir + "zz.service", `"target": "/opt/unit"`},
		{dir + "zz.service.d", `"target": "/opt/drop-ins"`},
		{"/etc/systemd/system.control", `"target": "/srv/ctl"`},
		{"/run/systemd/system.attached", `"target": "/srv/ctl"`},
		{"/run/systemd/transient", `"target": "../../srv/ctl"`},
		{"/run/systemd/generator.late", `"target": "/srv/ctl"`},
		{dir + "foo.service.d/x.conf", `"target": "/srv/e.conf"`},
		{"/etc/systemd/l.txt", `"target": "/srv/e2"`},
		{dir + "foo.service", `"target": "/etc/systemd/l.txt"`},
		{dir + "foo.service.d/x.conf", `"target": "/etc/systemd/l.txt"`},
		{dir + "foo.service", `"target": "/dev/nullx"`},
		{"/etc/systemd/l.txt", `"content": "a\u0000b"`},
		{dir + "x.service", `"content": "[Unit]\u0000Conflicts=a.service"`},
		{"/etc/systemd/system", `"target": "/evil"`},
		{"/usr/local/lib/systemd/system", `"target": "/evil"`},
		{"/usr/local/lib/systemd", `"target": "/evil"`},
	} {
		if _, err := Parse([]byte(aFile(c[0], c[1]))); err == nil || !strings.Contains(err.Error(), "resources[0].") {
			t.Errorf("%s %s: %v", c[0], c[1], err)
		}
	}
	for _, line := range []string{
		"Conflicts=mesh-host.service", "Conflicts=%p-host.service", "Conflicts = a.service mesh-%i.service", "Alias=%p.service",
		"BindsTo=%n", "PartOf=%N.service", "Also=%j.socket", "OnFailure=mesh-%i", "Requires=mesh-host@x.service", "RequiredBy=mesh-host",
		`Requires="mesh-ho"'st'.service`, `Conflicts=mesh\x2dhost.socket`, "Conflicts=a.service \\\n  %p-host.service",
		"Description=x \\\\\nConflicts=%p-host.service", "Description=x\\\\ \\\\\\\\\nConflicts=%p-host.service",
		"Conflicts=\\\\\\\n%p-host.service", "Conflicts=\\\r\n%p-host.service", "Conflicts=\\\n\r%p-host.service", "Description=a\rConflicts=%p-host.service",
		"\ufeffConflicts=%p-host.service", "Conflicts=\\\n\v# x %p-host.service", "Conflicts=\\\n\u0085; %p-host.service", ".include /srv/evil",
		"Conflicts=a.service \\\n# comment\n mesh-%i.service", "After=me%ost.service", "Unit=mesh-host.socket",
	} {
		for _, name := range []string{"x.service", "x.service.d/y.conf"} {
			text, err := json.Marshal("[Unit]\n" + line + "\n")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse([]byte(aFile(dir+name, `"content": `+string(text)))); err == nil || !strings.Contains(err.Error(), "resources[0].content") {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

func TestOtherUnitsMayBeDeclared(t *testing.T) {
	const dir = "/etc/systemd/system/"
	for _, c := range [][2]string{
		{dir + "mesh-controller.service", `"content": "[Service]\nExecStart=/usr/bin/mesh-controller serve\n"`},
		{dir + "mesh-hosts.service", noContent},
		{dir + "mesh-host-exporter.service.d/x.conf", noContent},
		{dir + "web.service.d/x.conf", noContent},
		{dir + "web@.service", `"content": "[Unit]\nRequires=net@%i.service\nBindsTo=sys-net-%i.device\nBefore=%i.target\n[Service]\nExecStart=/bin/%p-host.service\n# Alias=%n\n"`},
		{dir + "multi-user.target.wants/web.service", `"target": "../web.service"`},
		{dir + "dbus-x.service", `"target": "/usr/lib/systemd/system/x.service"`},
		{dir + "getty.target", `"target": "/dev/null"`},
		{"/etc/systemd/system", `"directory": true`},
		{"/etc/systemd/system.control", `"target": "/run/systemd/system.control"`},
		{"/etc/systemd/system/default.target", `"target": "/usr/lib/systemd/system/graphical.target"`},
		{"/etc/systemd/resolved.conf", `"target": "../../usr/lib/systemd/resolved.conf"`},
		{dir + "x.service", `"content": "[Service]\nExecStart=/bin/sh -c \\\\\nEnvironment=A=%p\n"`},
		{"/srv/service.d/x", noContent},
	} {
		if _, err := Parse([]byte(aFile(c[0], c[1]))); err != nil {
			t.Errorf("%s: %v", c[0], err)
		}
	}
}

func TestWhatLeadsToTheHostsOwnStaysARootsDirectory(t *testing.T) {
	for _, p := range []string{"/var", "/var/lib", "/etc", "/etc/nox-mesh", "/usr", "/usr/local/share", "/usr/local/share/nox-mesh", "/usr/share/nox-mesh", "/run"} {
		for want, more := range map[string]string{
			"path":  `"target": "/evil"`,
			"path ": noContent,
			"mode":  `"directory": true, "mode": "0777"`,
			"mode ": `"directory": true, "mode": "1775"`,
			"owner": `"directory": true, "owner": "daemon"`,
		} {
			if _, err := Parse([]byte(aFile(p, more))); err == nil || !strings.Contains(err.Error(), "resources[0]."+strings.TrimSpace(want)+": ") {
				t.Errorf("%s %s: %v", p, more, err)
			}
		}
		for _, more := range []string{`"directory": true`, `"directory": true, "mode": "0750", "group": "adm"`} {
			if _, err := Parse([]byte(aFile(p, more))); err != nil {
				t.Errorf("%s %s: %v", p, more, err)
			}
		}
	}
	for _, c := range [][2]string{
		{"/opt/s", "/var/lib/nox-mesh"}, {"/opt/s", "../run/nox-mesh/host.sock"}, {"/opt/s", "/etc/nox-mesh/./trust/x.pub"},
	} {
		if _, err := Parse([]byte(aFile(c[0], `"target": "`+c[1]+`"`))); err == nil || !strings.Contains(err.Error(), "resources[0].target: ") {
			t.Errorf("%s -> %s: %v", c[0], c[1], err)
		}
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
	const want = `{"content":"<x>","group":"root","mode":"0644","owner":"root","path":"/a","type":"file"}`
	if got := string(short.Resources[0].Spec()); got != want {
		t.Errorf("%s", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(doc(`{"id": "a", "type": "process", "name": "a", "command": ["/a"], "env": {"A": "b"}, "success_codes": [0, 3]}`)))
	f.Add([]byte(doc(`{"id": "a", "type": "file", "path": "/a", "target": "b"}`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Parse(b)
		if err != nil {
			if fault.KindOf(err) != fault.Refused {
				t.Errorf("kind %d: %v", fault.KindOf(err), err)
			}
			return
		}
		m, err := d.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(m)
		if err != nil {
			t.Fatalf("normal form is refused: %v\n%s", err, m)
		}
		if m2, _ := again.Marshal(); string(m) != string(m2) {
			t.Errorf("normal form is not stable:\n%s\n%s", m, m2)
		}
	})
}
