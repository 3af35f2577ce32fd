package declaration

import (
	"reflect"
	"strings"
	"testing"
)

const anImage = `"name": "web", "image": "` + dgst + `"`

var goodContainers = []string{
	anImage,
	`"name": "web_1.a-b", "image": "docker.io/library/registry:2@` + dgst + `", "network": "host", "args": ["serve", ""]`,
	`"name": "web", "image": "localhost/a@` + dgst + `"`, `"name": "web", "image": "registry:5000/a/b__c.d-e:V1.0@` + dgst + `"`,
	`"name": "web", "image": "10.0.0.1:5000/a@` + dgst + `"`, `"name": "web", "image": "[::1]:5000/a@` + dgst + `"`,
	anImage + `, "command": ["/bin/sh", "-c"], "args": ["true"], "env": {"A": "b"}, "env_from": "/etc/web.env"`,
	anImage + `, "mounts": [{"target": "/data", "volume": "data"}, {"target": "/host", "path": "/", "read_only": true}, {"target": "/tmp", "tmpfs": true}, {"target": "/b", "path": "/srv/b"}]`,
	anImage + `, "ports": [{"host": 80, "container": 8080}, {"host": 53, "container": 53, "protocol": "udp", "address": "127.0.0.1"}, {"host": 53, "container": 53, "address": "fd00::1"}], "network": "front"`,
	anImage + `, "restart": "on-failure", "labels": {"org.example/a": "b", "x": ""}, "user": "1000:1000", "limits": {"memory_mib": 64, "cpu_percent": 50, "processes": 10}`,
	anImage + `, "user": "nginx", "network": "none", "ports": [], "limits": {}, "env": {"NOX_ROOT": "/"}`,
	anImage + `, "mounts": [{"target": "/run/docker.sock", "path": "/run/docker.sock"}, {"target": "/etc/nox-mesh.toml", "path": "/etc/nox-mesh/controller.toml"}]`,
}

var badContainers = []refused{
	{`"image": "` + dgst + `"`, `resources[0].name: is missing`, false},
	{`"name": "web"`, `resources[0].image: is missing`, false},
	{`"name": "w", "image": "` + dgst + `"`, `resources[0].name: "w" is not a name`, false},
	{`"name": "/web", "image": "` + dgst + `"`, `resources[0].name: "/web" is not a name`, false},
	{`"name": "web", "image": "nginx:latest"`, `resources[0].image: "nginx:latest" is not an image pinned by its digest`, false},
	{`"name": "web", "image": "docker.io/library/nginx"`, `resources[0].image: "docker.io/library/nginx" is not an image`, false},
	{`"name": "web", "image": "nginx@` + dgst + `"`, `resources[0].image: "nginx@sha256:`, false},
	{`"name": "web", "image": "library/nginx@` + dgst + `"`, `resources[0].image: "library/nginx@sha256:`, false},
	{`"name": "web", "image": "docker.io/Nginx@` + dgst + `"`, `resources[0].image: "docker.io/Nginx@sha256:`, false},
	{`"name": "web", "image": "https://docker.io/nginx@` + dgst + `"`, `resources[0].image: "https://docker.io/nginx@sha256:`, false},
	{anImage + `, "args": "serve"`, `resources[0].args: is not a list`, false},
	{anImage + `, "env": ["A=b"]`, `resources[0].env: is not an object`, false},
	{anImage + `, "env_from": "web.env"`, `resources[0].env_from: "web.env" is not absolute`, false},
	{anImage + `, "mounts": [{"target": "/a"}]`, `resources[0].mounts[0]: needs exactly one of path, volume, tmpfs`, false},
	{anImage + `, "mounts": [{"target": "/a", "path": "/a", "volume": "aa"}]`, `resources[0].mounts[0]: needs exactly one of`, false},
	{anImage + `, "mounts": [{"target": "/a", "tmpfs": false}]`, `resources[0].mounts[0].tmpfs: can only be true`, false},
	{anImage + `, "mounts": [{"volume": "aa"}]`, `resources[0].mounts[0].target: is missing`, false},
	{anImage + `, "mounts": [{"target": "/", "volume": "aa"}]`, `resources[0].mounts[0].target: is the root directory`, false},
	{anImage + `, "mounts": [{"target": "/a", "path": "a"}]`, `resources[0].mounts[0].path: "a" is not absolute`, false},
	{anImage + `, "mounts": [{"target": "/a", "path": "/a", "options": "z"}]`, `resources[0].mounts[0].options: is not known`, false},
	{anImage + `, "mounts": ["/a:/a"]`, `resources[0].mounts[0]: is not an object`, false},
	{anImage + `, "mounts": [{"target": "/a", "volume": "aa"}, {"target": "/a", "tmpfs": true}]`, `resources[0].mounts[1].target: "/a" is the target of mounts[0] as well`, true},
	{anImage + `, "ports": ["80:80"]`, `resources[0].ports[0]: is not an object`, false},
	{anImage + `, "ports": [{"host": 80}]`, `resources[0].ports[0].container: is missing`, false},
	{anImage + `, "ports": [{"host": 0, "container": 80}]`, `resources[0].ports[0].host: 0 is not a whole number from 1 to 65535`, false},
	{anImage + `, "ports": [{"host": "80", "container": 80}]`, `resources[0].ports[0].host: is not a number`, false},
	{anImage + `, "ports": [{"host": 80, "container": 80, "protocol": "icmp"}]`, `resources[0].ports[0].protocol: "icmp" is not tcp, udp or sctp`, false},
	{anImage + `, "ports": [{"host": 80, "container": 80, "address": "localhost"}]`, `resources[0].ports[0].address: "localhost" is not an IP address`, true},
	{anImage + `, "ports": [{"host": 80, "container": 80, "address": "0.0.0.0"}]`, `resources[0].ports[0].address: "0.0.0.0" means all addresses: leave it out`, true},
	{anImage + `, "ports": [{"host": 80, "container": 80, "address": "FD00::1"}]`, `resources[0].ports[0].address: "FD00::1" is to be written "fd00::1"`, true},
	{anImage + `, "ports": [{"host": 80, "container": 80}, {"host": 80, "container": 81}]`, `resources[0].ports[1]: is published by ports[0] as well`, true},
	{anImage + `, "network": "host", "ports": [{"host": 80, "container": 80}]`, `resources[0].ports: have no meaning with network "host"`, false},
	{anImage + `, "network": "container:other"`, `resources[0].network: "container:other" is not a name`, false},
	{anImage + `, "restart": "unless-stopped"`, `resources[0].restart: "unless-stopped" is not always, on-failure or never`, false},
	{anImage + `, "labels": {"a b": ""}`, `resources[0].labels["a b"]: "a b" is not the name of a label`, false},
	{anImage + `, "labels": {"nox-mesh.id": "x"}`, `resources[0].labels["nox-mesh.id"]: is set by the host`, false},
	{anImage + `, "user": "a:b:c"`, `resources[0].user: "a:b:c" is not a user of the image's`, false},
	{anImage + `, "limits": {"memory_mib": 1}`, `resources[0].limits.memory_mib: 1 is not a whole number from 6 to`, false},
	{anImage + `, "limits": {"memory_mib": "64m"}`, `resources[0].limits.memory_mib: is not a number`, false},
	{anImage + `, "limits": {"cpus": 1}`, `resources[0].limits.cpus: is not known`, false},
	{anImage + `, "limits": {"cpu_percent": 0}`, `resources[0].limits.cpu_percent: 0 is not a whole number from 1 to`, false},
	{anImage + `, "privileged": true`, `resources[0].privileged: is not known`, false},
}

func TestAContainersDefaultsAreSpelledOut(t *testing.T) {
	d, err := Parse([]byte(doc(resource(TypeContainer, anImage+`, "ports": [{"host": 80, "container": 8080}]`))))
	if err != nil {
		t.Fatal(err)
	}
	want := Container{Name: "web", Image: dgst, Network: "bridge", Restart: "always", Ports: []Port{{80, 8080, "tcp", ""}}}
	if got := *d.Resources[0].Container; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	const spec = `{"image":"` + dgst + `","name":"web","network":"bridge","ports":[{"container":8080,"host":80,"protocol":"tcp"}],"restart":"always","type":"container"}`
	if got := string(d.Resources[0].Spec()); got != spec {
		t.Errorf("%s", got)
	}
}

func TestNoContainerSeesTheHostsOwn(t *testing.T) {
	for where, members := range map[string][]string{
		"name":     {`"name": "mesh-host", "image": "` + dgst + `"`},
		"env_from": {anImage + `, "env_from": "/var/lib/nox-mesh/host/identity.json"`, anImage + `, "env_from": "/etc/nox-mesh/host.toml"`},
		"mounts[0].path": {
			anImage + `, "mounts": [{"target": "/a", "read_only": true, "path": "/var/lib/nox-mesh"}]`,
			anImage + `, "mounts": [{"target": "/a", "read_only": true, "path": "/var/lib/nox-mesh/host/identity.json"}]`,
			anImage + `, "mounts": [{"target": "/a", "path": "/run/nox-mesh"}]`,
			anImage + `, "mounts": [{"target": "/a", "path": "/etc/systemd/system/mesh-host.service.d"}]`,
			anImage + `, "mounts": [{"target": "/a", "path": "/etc/nox-mesh/trust"}]`,
			anImage + `, "mounts": [{"target": "/a", "path": "/"}]`, anImage + `, "mounts": [{"target": "/a", "path": "/var/lib"}]`,
			anImage + `, "mounts": [{"target": "/a", "path": "/etc/systemd/system", "read_only": false}]`,
		},
	} {
		for _, m := range members {
			_, err := Parse([]byte(doc(resource(TypeContainer, m))))
			if list := faultsOf(err); len(list) != 1 || list[0].Path != "resources[0]."+where || !strings.Contains(list[0].Text, "the host's own") {
				t.Errorf("%s: %v", m, err)
			}
		}
	}
}
