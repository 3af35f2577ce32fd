package unit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A status is what systemd says of a unit (org.freedesktop.systemd1(5)).
type status struct {
	ID, Load, LoadError, Active, Sub, Fragment string
	Names                                      []string
	NeedReload                                 bool
	// Unmet are the conditions because of which it was not started; of a unit
	// that systemd has forgotten since, those that may be why.
	Unmet []string
	// ActiveEnter and ActiveExit are when it last came up and went down, by the
	// clock since the boot, in microseconds; Starting is when it began to start.
	ActiveEnter, ActiveExit, Starting uint64
	// WentDown and StartingSince are by the clock on the wall: for people.
	WentDown, StartingSince time.Time

	// The rest is asked only of one that is not active.

	Result string
	// Once: it ends when its work is done, and is never active.
	Once bool
	// MainExit is when its main process ended, and Exit how.
	MainExit uint64
	Exit     string
}

func statusOf(p map[string]any) status {
	s := status{
		ID: text(p, "Id"), Load: text(p, "LoadState"), Active: text(p, "ActiveState"), Sub: text(p, "SubState"), Fragment: text(p, "FragmentPath"),
		NeedReload:  p["NeedDaemonReload"] == true,
		ActiveEnter: number(p, "ActiveEnterTimestampMonotonic"), ActiveExit: number(p, "ActiveExitTimestampMonotonic"),
		Starting: number(p, "InactiveExitTimestampMonotonic"),
		WentDown: wall(p, "ActiveExitTimestamp"), StartingSince: wall(p, "InactiveExitTimestamp"),
	}
	s.Names, _ = p["Names"].([]string)
	if e, _ := p["LoadError"].([]any); len(e) == 2 {
		s.LoadError, _ = e[1].(string)
	}
	if p["ConditionResult"] == false {
		s.Unmet = unmet(p["Conditions"], number(p, "ConditionTimestampMonotonic") == 0)
	}
	return s
}

// unmet names the conditions that failed, or that were not looked at yet, of an
// array of (sbbsi): the setting, whether one of several is enough, whether it is
// negated, its value, and more than 0 when it was met, less when it was not.
func unmet(v any, unknown bool) []string {
	all, _ := v.([][]any)
	var out []string
	for _, c := range all {
		if len(c) != 5 {
			continue
		}
		setting, _ := c[0].(string)
		not, _ := c[2].(bool)
		value, _ := c[3].(string)
		if met, ok := c[4].(int32); !ok || met > 0 || met == 0 && !unknown {
			continue
		}
		if not {
			value = "!" + value
		}
		out = append(out, setting+"="+value)
	}
	return out
}

// detail adds what only its type has.
func (s *status) detail(p map[string]any) {
	s.Result = text(p, "Result")
	s.Once = text(p, "Type") == "oneshot" && p["RemainAfterExit"] == false
	s.MainExit = number(p, "ExecMainExitTimestampMonotonic")
	code, _ := p["ExecMainCode"].(int32)
	st, _ := p["ExecMainStatus"].(int32)
	s.Exit = exitOf(code, st)
}

// exitOf says how a process ended (waitid(2), si_code).
func exitOf(code, st int32) string {
	switch code {
	case 1:
		if why := execStep[st]; why != "" {
			return "cannot be executed: " + why
		}
		return fmt.Sprintf("exited with %d", st)
	case 2, 3:
		return "killed by " + unix.SignalName(unix.Signal(st))
	}
	return ""
}

// execStep are the exit statuses of a process that systemd could not make what
// the unit says (systemd.exec(5), "Process Exit Codes").
var execStep = map[int32]string{
	200: "its working directory (200/CHDIR)", 203: "its program (203/EXEC)", 209: "its standard output (209/STDOUT)",
	216: "its group (216/GROUP)", 217: "its user (217/USER)", 226: "its mounts (226/NAMESPACE)",
}

func text(p map[string]any, name string) string { s, _ := p[name].(string); return s }

func number(p map[string]any, name string) uint64 { n, _ := p[name].(uint64); return n }

func wall(p map[string]any, name string) time.Time {
	us := number(p, name)
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(us)).UTC()
}

// runs: there is something to stop, reload or restart.
func (s status) runs() bool {
	switch s.Active {
	case "active", "reloading", "refreshing", "activating", "maintenance":
		return true
	}
	return false
}

// again: it ended, and systemd is about to start it once more.
func (s status) again() bool {
	return s.Active == "activating" && strings.HasPrefix(s.Sub, "auto-restart")
}

// down says how a unit is that shall be active and does not run.
func (s status) down() string {
	switch {
	case s.Load == "not-found":
		return "there is no such unit"
	case s.Active == "failed":
		return "failed: " + s.ended()
	case s.Active != "inactive":
		return s.Active
	case s.stopped():
		return "somebody had stopped it at " + s.WentDown.Format(time.RFC3339)
	case s.ActiveExit > 0:
		return "it ended by itself at " + s.WentDown.Format(time.RFC3339) + comma(s.Exit)
	}
	return "inactive"
}

// stopped: a job took it down, of a person or of another unit, and not the end
// of its main process. A service that is told to stop leaves the active state
// before its process ends; one that ends by itself, after.
func (s status) stopped() bool {
	return s.Active == "inactive" && s.ActiveExit > 0 && s.ActiveExit >= s.ActiveEnter &&
		(s.MainExit < s.ActiveEnter || s.MainExit > s.ActiveExit) &&
		slices.Contains([]string{"", "success"}, s.Result)
}

// ended says why it is not up, in systemd's own words.
func (s status) ended() string {
	switch {
	case s.Result == "" || s.Result == "success":
		return s.Active + paren(s.Sub) + comma(s.Exit)
	case s.Exit == "" || s.Exit == "exited with 0":
		return s.Result
	}
	return s.Result + ", " + s.Exit
}

func comma(s string) string {
	if s == "" {
		return ""
	}
	return ", " + s
}

func paren(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// broken says why systemd cannot make anything of the unit's files, or "".
func (s status) broken() string {
	switch s.Load {
	case "loaded", "not-found", "masked", "stub", "merged", "":
		return ""
	}
	return "systemd cannot load it: " + s.Load + comma(s.LoadError)
}
