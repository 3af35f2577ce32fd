package unit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// What systemd 252 said of a service, recorded.
func TestU09WhoTookItDown(t *testing.T) {
	for name, c := range map[string]struct {
		unit, service map[string]any
		want          string
	}{
		"systemctl stop": {
			map[string]any{"LoadState": "loaded", "ActiveState": "inactive", "SubState": "dead", "ActiveExitTimestamp": uint64(1893499200000000),
				"ActiveEnterTimestampMonotonic": uint64(29630889798), "ActiveExitTimestampMonotonic": uint64(29631012880)},
			map[string]any{"Result": "success", "ExecMainExitTimestampMonotonic": uint64(29631014145), "ExecMainCode": int32(2), "ExecMainStatus": int32(15)},
			"somebody had stopped it at 2030-01-01T12:00:00Z"},
		"systemctl stop, and it says goodbye": {
			map[string]any{"LoadState": "loaded", "ActiveState": "inactive", "ActiveExitTimestamp": uint64(1893499200000000),
				"ActiveEnterTimestampMonotonic": uint64(29631772815), "ActiveExitTimestampMonotonic": uint64(29632324182)},
			map[string]any{"Result": "success", "ExecMainExitTimestampMonotonic": uint64(29632325476), "ExecMainCode": int32(1), "ExecMainStatus": int32(0)},
			"somebody had stopped it at 2030-01-01T12:00:00Z"},
		"kill": {
			map[string]any{"LoadState": "loaded", "ActiveState": "inactive", "ActiveExitTimestamp": uint64(1893499200000000),
				"ActiveEnterTimestampMonotonic": uint64(29631056835), "ActiveExitTimestampMonotonic": uint64(29631085108)},
			map[string]any{"Result": "success", "ExecMainExitTimestampMonotonic": uint64(29631084862), "ExecMainCode": int32(2), "ExecMainStatus": int32(15)},
			"it ended by itself at 2030-01-01T12:00:00Z, killed by SIGTERM"},
		"it came to its end": {
			map[string]any{"LoadState": "loaded", "ActiveState": "inactive", "ActiveExitTimestamp": uint64(1893499200000000),
				"ActiveEnterTimestampMonotonic": uint64(29631434187), "ActiveExitTimestampMonotonic": uint64(29631447871)},
			map[string]any{"Result": "success", "ExecMainExitTimestampMonotonic": uint64(29631447116), "ExecMainCode": int32(1), "ExecMainStatus": int32(0)},
			"it ended by itself at 2030-01-01T12:00:00Z, exited with 0"},
		"a timer that was stopped": {
			map[string]any{"LoadState": "loaded", "ActiveState": "inactive", "ActiveExitTimestamp": uint64(1893499200000000),
				"ActiveEnterTimestampMonotonic": uint64(100), "ActiveExitTimestampMonotonic": uint64(200)},
			map[string]any{"Result": "success"},
			"somebody had stopped it at 2030-01-01T12:00:00Z"},
		"never up": {map[string]any{"LoadState": "loaded", "ActiveState": "inactive", "SubState": "dead"}, map[string]any{"Result": "success"}, "inactive"},
		"none":     {map[string]any{"LoadState": "not-found", "ActiveState": "inactive"}, nil, "there is no such unit"},
		"killed": {map[string]any{"LoadState": "loaded", "ActiveState": "failed"},
			map[string]any{"Result": "signal", "ExecMainCode": int32(2), "ExecMainStatus": int32(9)}, "failed: signal, killed by SIGKILL"},
	} {
		s := statusOf(c.unit)
		s.detail(c.service)
		if got := s.down(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestH12HowLongAUnitStartsIsNotByTheWall: its times on the wall are of before the
// clock was set, to years later or earlier.
func TestH12HowLongAUnitStartsIsNotByTheWall(t *testing.T) {
	for _, set := range []uint64{1, 4102444800000000} {
		v := &view{unit: &declaration.Unit{Active: new(true)}, status: statusOf(map[string]any{
			"LoadState": "loaded", "ActiveState": "activating", "SubState": "start",
			"InactiveExitTimestamp": set, "InactiveExitTimestampMonotonic": uint64(3600_000_000),
		})}
		if failing, note := v.failing(time.Hour + time.Minute); failing != "" || note != "it is starting (start)" {
			t.Errorf("for a minute: %q %q", failing, note)
		}
		if failing, _ := v.failing(time.Hour + 3*time.Minute); !strings.Contains(failing, "it has been starting (start) since ") {
			t.Errorf("for three: %q", failing)
		}
	}
}

func TestU06UnmetConditions(t *testing.T) {
	list := [][]any{
		{"ConditionPathExists", false, false, "/nope", int32(-1)},
		{"ConditionVirtualization", false, true, "container", int32(-2)},
		{"ConditionPathExists", false, false, "/", int32(1)},
	}
	s := statusOf(map[string]any{"ConditionResult": false, "ConditionTimestampMonotonic": uint64(1), "Conditions": list})
	if want := []string{"ConditionPathExists=/nope", "ConditionVirtualization=!container"}; !slices.Equal(s.Unmet, want) {
		t.Errorf("%q", s.Unmet)
	}
	if s := statusOf(map[string]any{"ConditionResult": true, "ConditionTimestampMonotonic": uint64(1), "Conditions": list}); s.Unmet != nil {
		t.Errorf("%q", s.Unmet)
	}
}

func TestTheJobThatMakesItAsDeclared(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		active                  *bool
		on                      declaration.OnChange
		state                   string
		changed, asked, failing bool
		want                    verb
	}{
		{&yes, "restart", "inactive", false, false, false, start},
		{&yes, "restart", "failed", true, true, false, start},
		{&yes, "none", "deactivating", false, false, false, start},
		{&yes, "restart", "active", false, false, false, ""},
		{&yes, "restart", "active", true, false, false, restart},
		{&yes, "reload", "active", true, false, false, reload},
		{&yes, "none", "active", true, false, false, ""},
		{&yes, "none", "active", false, true, false, restart},
		{&yes, "reload", "active", false, true, false, reload},
		{&yes, "reload", "activating", false, true, true, restart},
		{&yes, "restart", "activating", false, false, false, start},
		{nil, "restart", "activating", false, false, false, ""},
		{nil, "restart", "inactive", true, true, false, ""},
		{nil, "restart", "active", true, false, false, restart},
		{&no, "restart", "active", true, true, false, stop},
		{&no, "restart", "deactivating", false, false, false, stop},
		{&no, "restart", "failed", true, true, false, ""},
	} {
		u := &declaration.Unit{Active: c.active, OnChange: c.on}
		if got := change(u, status{Active: c.state}, c.changed, c.asked, c.failing); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
