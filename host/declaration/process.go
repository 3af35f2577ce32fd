package declaration

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// stopSignals are the signals a process may be asked to stop by.
var stopSignals = map[string]bool{
	"SIGTERM": true, "SIGINT": true, "SIGQUIT": true, "SIGHUP": true, "SIGUSR1": true, "SIGUSR2": true, "SIGKILL": true,
}

func parseProcess(o *object) *Process {
	p := &Process{
		Name:             o.need("name"),
		Command:          o.texts("command"),
		Env:              parseEnv(o),
		User:             o.text("user", "root"),
		WorkingDirectory: o.text("working_directory", "/"),
		Restart:          Restart(o.text("restart", string(RestartAlways))),
		Run:              Run(o.text("run", string(RunService))),
		SuccessCodes:     parseCodes(o),
		StopSignal:       o.text("stop_signal", "SIGTERM"),
		StopTimeout:      int(o.number("stop_timeout", 10, 1, 3600)),
		FailureLimit:     int(o.number("failure_limit", 5, 1, 1000)),
	}
	if p.Name != "" && !validName(p.Name) {
		o.fault("name", "%q is not a name (a-z, 0-9, '-', at most 63)", p.Name)
	}
	if len(p.Command) == 0 {
		o.fault("command", "is missing")
	} else {
		checkPath(o, "command[0]", p.Command[0])
	}
	for i, a := range p.Command {
		if strings.ContainsRune(a, 0) {
			o.fault(fmt.Sprintf("command[%d]", i), "holds a NUL byte")
		}
	}
	checkAccount(o, "user", p.User)
	if p.WorkingDirectory != "/" {
		checkPath(o, "working_directory", p.WorkingDirectory)
	}
	switch p.Restart {
	case RestartAlways, RestartOnFailure, RestartNever:
	default:
		o.fault("restart", "%q is not always, on-failure or never", p.Restart)
	}
	switch p.Run {
	case RunService, RunOnce:
	default:
		o.fault("run", "%q is not service or once", p.Run)
	}
	if !stopSignals[p.StopSignal] {
		o.fault("stop_signal", "%q is not a signal to stop by", p.StopSignal)
	}
	return p
}

func parseEnv(o *object) map[string]string {
	v, ok := o.get("env")
	if !ok {
		return nil
	}
	ms, ok := v.([]member)
	if !ok {
		o.fault("env", "is not an object")
		return nil
	}
	env := map[string]string{}
	for _, m := range ms {
		s, ok := m.value.(string)
		switch {
		case !ok:
			o.fault("env."+m.name, "is not a string")
		case m.name == "" || strings.ContainsAny(m.name, "=\x00"):
			o.fault("env", "%q is not the name of a variable", m.name)
		case strings.ContainsRune(s, 0):
			o.fault("env."+m.name, "holds a NUL byte")
		case m.name == "NOX_ROOT":
			o.fault("env."+m.name, "is set by the host")
		default:
			env[m.name] = s
		}
	}
	return env
}

func parseCodes(o *object) []int {
	v, ok := o.get("success_codes")
	if !ok {
		return []int{0}
	}
	list, ok := v.([]any)
	if !ok {
		o.fault("success_codes", "is not a list")
		return nil
	}
	codes := []int{}
	for i, e := range list {
		n, _ := e.(json.Number)
		c, err := strconv.Atoi(n.String())
		if err != nil || c < 0 || c > 255 {
			o.fault(fmt.Sprintf("success_codes[%d]", i), "is not an exit status from 0 to 255")
			continue
		}
		codes = append(codes, c)
	}
	return codes
}
