package declaration

import (
	"encoding/json"
	"strconv"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// Run says what a process is.
type Run string

// The ways to run.
const (
	// RunService is kept up.
	RunService Run = "service"
	// RunOnce runs to completion once per content of its definition.
	RunOnce Run = "once"
)

// A Process is a program the host keeps running, under the shim.
type Process struct {
	Name string
	// Command is the program, absolute, and its arguments.
	Command []string
	Env     map[string]string
	// User is a name, or a number that needs no account; root when the
	// document says nothing.
	User             string
	WorkingDirectory string
	Restart          Restart
	Run              Run
	// SuccessCodes are exit statuses that count as success; [0] by default.
	SuccessCodes []int
	// StopSignal is a name such as "SIGTERM", the default.
	StopSignal string
	// StopTimeout is how long the process may take to stop, in seconds; 10 by
	// default.
	StopTimeout int
	// FailureLimit is how many failures in a row halt it; 5 by default.
	FailureLimit int
	// Rollback: at the failure limit, the executable that it worked with before is
	// put back. It is a file of the same declaration that has a source.
	Rollback bool
}

// stopSignals are the signals a process may be asked to stop by.
var stopSignals = words("SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGKILL")

var runRule = words(RunService, RunOnce)

func (p *Process) fields() []field {
	return []field{
		{"name", text[string]{&p.Name, nameRule, ""}, true, "The name it is kept up under."},
		{"command", texts{&p.Command, argumentRule, pathRule, 1}, true, "The program, absolute, and its arguments. No shell reads it."},
		{"env", table{to: &p.Env, names: variableRule, value: argumentRule, reserved: hostVariables, more: node{"properties": node{"NOX_ROOT": false, "NOX_SHIM": false}}}, false, "The environment, by variable: nothing else is in it but PATH, and what the host sets."},
		{"user", text[string]{&p.User, accountRule, "root"}, false, "Whom it runs as: a name, or a number that needs no account."},
		{"working_directory", text[string]{&p.WorkingDirectory, directoryRule, "/"}, false, "Where it starts."},
		{"restart", text[Restart]{&p.Restart, restartRule, RestartAlways}, false, "When it is started again after it ended."},
		{"run", text[Run]{&p.Run, runRule, RunService}, false, "A service is kept up; once runs to its end one time for each content of this definition."},
		{"success_codes", statuses{&p.SuccessCodes}, false, "Exit statuses that count as success."},
		{"stop_signal", text[string]{&p.StopSignal, stopSignals, "SIGTERM"}, false, "The signal that asks it to stop."},
		{"stop_timeout", number[int]{&p.StopTimeout, 10, 1, 3600}, false, "How long it may take to stop, in seconds, before it is killed."},
		{"failure_limit", number[int]{&p.FailureLimit, 5, 1, 1000}, false, "How many failures in a row halt it."},
		{"rollback", flag{&p.Rollback}, false, "At the failure limit the executable that it last lived with for a minute is put back, once, and the file that brought the other is held there until it has another source. The program must be a file of this declaration that has a source."},
	}
}

// hostVariables are those that the host sets.
func hostVariables(name string) string {
	if name == "NOX_ROOT" || name == "NOX_SHIM" {
		return "is set by the host"
	}
	return ""
}

func (p *Process) check(o *object) {
	switch {
	case !p.Rollback:
	case p.Run == RunOnce:
		o.fault("rollback", "is for a service: what runs once does not show that it works by living on")
	case p.Restart == RestartNever:
		o.fault("rollback", "has no meaning for what is never started again")
	}
}

func (p *Process) rules() node {
	return node{
		"description": "A program that the host keeps running, with no container around it.",
		"if":          node{"properties": node{"rollback": node{"const": true}}, "required": []string{"rollback"}},
		"then": node{"properties": node{
			"run":     node{"const": RunService},
			"restart": node{"enum": []Restart{RestartAlways, RestartOnFailure}},
		}},
	}
}

func (p *Process) name() string { return p.Name }

// UnitName is the name of the unit that keeps the process up where systemd is.
func (p *Process) UnitName() string { return "nox-" + p.Name + ".service" }

func (p *Process) claims() []string {
	return []string{unitKey(p.UnitName()), fileKey(layout.Layout{}.UnitDir() + "/" + p.UnitName())}
}

func (p *Process) sources() []digest.Digest { return nil }

func (p *Process) own(_ []layout.Own, say func(member, why string)) { ownName(p.Name, say) }

// statuses is a list of exit statuses.
type statuses struct{ to *[]int }

func (s statuses) read(a at, v any) {
	list, ok := v.([]any)
	if !ok {
		a.fault("is not a list")
		return
	}
	*s.to = []int{}
	for i, e := range list {
		n, _ := e.(json.Number)
		c, err := strconv.ParseUint(n.String(), 10, 8)
		if err != nil {
			a.element(i).fault("is not an exit status from 0 to 255")
		}
		*s.to = append(*s.to, int(c))
	}
}
func (s statuses) unset()     { *s.to = []int{0} }
func (s statuses) write() any { return *s.to }
func (s statuses) schema() node {
	return node{"type": "array", "items": node{"type": "integer", "minimum": 0, "maximum": 255}, "default": []int{0}}
}
