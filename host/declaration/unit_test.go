package declaration

import (
	"encoding/json"
	"strings"
	"testing"
)

var goodUnits = []string{
	`"name": "backup.timer", "content": "[Timer]\nOnCalendar=daily\n", "enabled": true, "active": true`,
	`"name": "backup.service", "source": "` + dgst + `", "on_change": "none"`,
	`"name": "ssh.service", "drop_ins": {"10-limits.conf": "[Service]\nMemoryMax=1G\n", "a.conf": ""}, "on_change": "reload"`,
	`"name": "sleep.target", "masked": true`, `"name": "sleep.target", "masked": true, "active": false, "enabled": false`,
	`"name": "web@.service", "content": ""`, `"name": "web@a-b\\x2fc@d.service", "active": true`,
	`"name": "-.mount", "active": true`, `"name": "srv-my\\x2ddata.mount", "enabled": false`, `"name": "a.slice", "masked": false`,
	`"name": "mesh-controller.service", "content": "[Unit]\nAfter=network.target\n"`, `"name": "mesh-hosts.service", "active": true`,
}

var badUnits = []refused{
	{`"active": true`, `resources[0].name: is missing`, false},
	{`"name": "a.service"`, `resources[0]: needs at least one of content, source, drop_ins, enabled, active, masked`, false},
	{`"name": "a.service", "on_change": "none"`, `resources[0]: needs at least one of`, false},
	{`"name": "a", "active": true`, `resources[0].name: "a" is not the name of a unit`, false},
	{`"name": ".service", "active": true`, `resources[0].name: ".service" is not the name of a unit`, false},
	{`"name": "../a.service", "active": true`, `resources[0].name: "../a.service" is not the name of a unit`, false},
	{`"name": "a b.service", "active": true`, `resources[0].name: "a b.service" is not the name of a unit`, false},
	{`"name": "a.scope", "active": true`, `resources[0].name: "a.scope" is not the name of a unit`, false},
	{`"name": "dev-sda.device", "active": true`, `resources[0].name: "dev-sda.device" is not the name of a unit`, false},
	{`"name": "@a.service", "active": true`, `resources[0].name: "@a.service" is not the name of a unit`, false},
	{`"name": "a.service", "content": "", "source": "` + dgst + `"`, `resources[0]: needs at most one of content, source`, false},
	{`"name": "a.service", "source": "x"`, `resources[0].source: "x" is not a sha256 digest`, false},
	{`"name": "a.service", "enabled": "yes"`, `resources[0].enabled: is not true or false`, false},
	{`"name": "a.service", "active": null`, `resources[0].active: is not true or false`, false},
	{`"name": "a.service", "active": true, "on_change": "try-restart"`, `resources[0].on_change: "try-restart" is not none, reload or restart`, false},
	{`"name": "a.service", "masked": true, "content": ""`, `resources[0].content: has no meaning for a masked unit`, false},
	{`"name": "a.service", "masked": true, "active": true`, `resources[0].active: cannot be true of a masked unit`, false},
	{`"name": "a.service", "masked": true, "enabled": true`, `resources[0].enabled: cannot be true of a masked unit`, false},
	{`"name": "a@.service", "active": true`, `resources[0].active: cannot be true of a template, only of an instance of it ("a@NAME.service")`, true},
	{`"name": "a.service", "drop_ins": []`, `resources[0].drop_ins: is not an object`, false},
	{`"name": "a.service", "drop_ins": {"x": ""}`, `resources[0].drop_ins.x: "x" is not the name of a drop-in`, false},
	{`"name": "a.service", "drop_ins": {"../x.conf": ""}`, `resources[0].drop_ins["../x.conf"]: "../x.conf" is not the name of a drop-in`, false},
	{`"name": "a.service", "drop_ins": {".x.conf": ""}`, `resources[0].drop_ins[".x.conf"]: ".x.conf" is not the name of a drop-in`, false},
	{`"name": "a.service", "drop_ins": {"x.conf": 1}`, `resources[0].drop_ins["x.conf"]: is not a string`, false},
	{`"name": "a.service", "content": "", "mode": "0644"`, `resources[0].mode: is not known`, false},
	{`"name": "a.service", "content": "", "secret": true`, `resources[0].secret: is not known`, false},
}

func TestAUnitSaysOnlyWhatItSays(t *testing.T) {
	d, err := Parse([]byte(doc(resource(TypeUnit, `"name": "a.service", "active": false`))))
	if err != nil {
		t.Fatal(err)
	}
	u := d.Resources[0].Unit
	if u.Enabled != nil || u.Masked != nil || u.Content != nil || u.Active == nil || *u.Active {
		t.Errorf("%+v", u)
	}
	if got := string(d.Resources[0].Spec()); got != `{"active":false,"name":"a.service","on_change":"restart","type":"unit"}` {
		t.Errorf("%s", got)
	}
}

func TestU10NoUnitIsTheHosts(t *testing.T) {
	for _, name := range []string{
		"mesh-host.service", "mesh-host@a.service", "mesh-host@.service", "mesh-host.socket", "mesh-host.timer", "mesh-host.path", "mesh-.service",
	} {
		for _, more := range []string{`"content": ""`, `"source": "` + dgst + `"`, `"masked": true`, `"enabled": false`, `"drop_ins": {"x.conf": ""}`} {
			_, err := Parse([]byte(doc(resource(TypeUnit, `"name": "`+name+`", `+more))))
			if list := faultsOf(err); len(list) != 1 || list[0].Path != "resources[0].name" || !strings.Contains(list[0].Text, name) || !strings.Contains(list[0].Text, "the host's own unit") {
				t.Errorf("%s %s: %v", name, more, err)
			}
		}
	}
	for _, line := range []string{
		"Alias=mesh-host.service", "Also=mesh-host.service", "Conflicts=mesh-host.service", "BindsTo=mesh-host.service", "OnFailure=mesh-host.service",
		"PartOf=%p-host.service", "Also=mesh-host@x.service", `Conflicts="mesh-ho"'st'.service`, "Alias=a.service \\\n mesh-host.service",
	} {
		text, err := json.Marshal("[Install]\n" + line + "\n")
		if err != nil {
			t.Fatal(err)
		}
		for where, more := range map[string]string{
			"content":               `"content": ` + string(text),
			`drop_ins["10-x.conf"]`: `"drop_ins": {"10-x.conf": ` + string(text) + `}`,
		} {
			_, err = Parse([]byte(doc(resource(TypeUnit, `"name": "innocent.service", `+more))))
			if list := faultsOf(err); len(list) != 1 || list[0].Path != "resources[0]."+where || !strings.Contains(list[0].Text, "mesh-host.service") {
				t.Errorf("%s in %s: %v", line, where, err)
			}
		}
	}
}
