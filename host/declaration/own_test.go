package declaration

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestU10TheHostsOwnIsRefusedByName(t *testing.T) {
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

func TestU10TheHostsUnitIsRefusedInEverySpelling(t *testing.T) {
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
