package profile

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestAnOlderHostsWordsStayAsTheyAre: the control plane keeps a digest of them,
// as it writes them again.
func TestAnOlderHostsWordsStayAsTheyAre(t *testing.T) {
	for _, text := range []string{
		`{"architecture":"x86_64","kernel":"6.1.0-18-amd64","distribution":"debian","distribution_version":"12","init":"systemd","package_manager":"apt",` +
			`"runtime":"podman","hostname":"web-1","machine_id":"9f2b1c6e5d4a4b3c8e7f60718293a4b5","memory_bytes":2062761984,"cpus":2,"schema":1}`,
		`{"architecture":"aarch64","init":"none","schema":1}`,
	} {
		var p Profile
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(p); err != nil || string(got) != text {
			t.Errorf("got  %s, %v\nwant %s", got, err, text)
		}
	}
	const text = `{"version":"1.0.0","owned":["file:/etc/motd"],"addresses":["192.0.2.7"]}`
	var inv Inventory
	if err := json.Unmarshal([]byte(text), &inv); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(inv); err != nil || string(got) != text {
		t.Errorf("got  %s, %v\nwant %s", got, err, text)
	}
}

// TestTheNamesOnTheWire are kept for ever; what Unknown names is one of them.
func TestTheNamesOnTheWire(t *testing.T) {
	p := Profile{
		Architecture: "x86_64", Init: "systemd", Virtualisation: "kvm", Container: "none", ProductID: "4c9b0a51-2b5c-11b2-a85c-f3a1d0b4e1c7", Schema: 1,
	}
	const wantProfile = `{"architecture":"x86_64","init":"systemd","virtualisation":"kvm","container":"none",` +
		`"product_id":"4c9b0a51-2b5c-11b2-a85c-f3a1d0b4e1c7","schema":1}`
	inv := Inventory{
		Version: "1.0.0", Addresses: []string{"192.0.2.7"}, Interfaces: []Interface{{"eth0", []string{"192.0.2.7"}}},
		PackageManagerVersion: "2.6.1", RuntimeVersion: "4.3.1", Disks: []Disk{{"vda", 512, false, true}},
		FileSystems: []FileSystem{{"/", []string{"/", "/var"}, "ext4", 4096, true}}, Unknown: map[string]string{"memory_bytes": "it did not answer within 2 s"},
	}
	const wantInventory = `{"version":"1.0.0","addresses":["192.0.2.7"],"interfaces":[{"name":"eth0","addresses":["192.0.2.7"]}],` +
		`"package_manager_version":"2.6.1","runtime_version":"4.3.1","disks":[{"name":"vda","bytes":512,"rotational":false,"removable":true}],` +
		`"file_systems":[{"mount":"/","holds":["/","/var"],"type":"ext4","bytes":4096,"read_only":true}],"unknown":{"memory_bytes":"it did not answer within 2 s"}}`
	for want, v := range map[string]any{wantProfile: p, wantInventory: inv} {
		if got, err := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	names := map[string]bool{}
	for _, typ := range []reflect.Type{reflect.TypeFor[Profile](), reflect.TypeFor[Inventory]()} {
		for i := range typ.NumField() {
			name := typ.Field(i).Tag.Get("json")
			for j, r := range name {
				if r == ',' {
					name = name[:j]
					break
				}
			}
			names[name] = true
		}
	}
	for _, list := range [][]fact{runs, has} {
		for _, f := range list {
			if !names[f.name] {
				t.Errorf("a reader cannot tell what %q is", f.name)
			}
		}
	}
}
