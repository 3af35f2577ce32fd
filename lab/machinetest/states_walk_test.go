//go:build machine

package machinetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// A walk is where the two machines are.
type walk struct {
	t           *testing.T
	alpha, beta *machine.Machine
	// process is what keeps beta's process up, "" when it shall have none.
	process string
	token   string // the last
}

// is what a step leads to.
type is struct {
	state string
	owned int
	// source is where the declaration in force comes from.
	source string
	// plane is the newest node of the machine as the control plane sees it, "" when
	// it sees none, or is not there.
	plane string
	// why is in what the link says, warns in each warning.
	why, warns string
}

// sees looks at the machine and at the control plane after a step, and says it.
func (w *walk) sees(m *machine.Machine, step string, want is) {
	w.t.Helper()
	got := is{state: "unmanaged"}
	var s struct {
		State       string
		Owned       int
		Declaration struct{ Source string }
		Link        struct{ Revoked string }
		Warnings    []string
	}
	if has(w.t, m, "/usr/local/bin/mesh-host") {
		if err := json.Unmarshal([]byte(m.Must("mesh-host", "status", "--json")), &s); err != nil {
			w.t.Fatal(err)
		}
		got = is{state: s.State, owned: s.Owned, source: s.Declaration.Source, why: s.Link.Revoked, warns: strings.Join(s.Warnings, "; ")}
	} else if w.process != "" {
		got.owned = want.owned // by the store that stays; nobody is there to be asked
	}
	if want.plane != "" {
		got.plane = w.of(m)
	}
	w.t.Logf("%-6s %-47s %-13s owns %d  %s", m.Name(), step, got.state, got.owned, got.plane)
	if want.why != "" && strings.Contains(got.why, want.why) {
		got.why = want.why
	}
	if want.warns != "" && len(s.Warnings) > 0 && !slices.ContainsFunc(s.Warnings, func(said string) bool { return !strings.Contains(said, want.warns) }) {
		got.warns = want.warns
	}
	if got != want {
		w.t.Errorf("%s, %s:\n is   %+v\n want %+v", m.Name(), step, got, want)
	}
	if m == w.alpha {
		return
	}
	if w.process == "" {
		if out, _ := m.Run(w.t.Context(), "pgrep", "-x", "sleep"); out != "" {
			w.t.Errorf("%s: a process runs: %s", step, out)
		}
		return
	}
	if now := mainPID(m, "nox-sleeper"); now != w.process {
		w.t.Errorf("%s: the process was %s and is %s", step, w.process, now)
	}
	if !holds(w.t, m, "/srv/page", "hello\n") {
		w.t.Errorf("%s: the page is not there", step)
	}
}

// A planeNode is a line of `mesh-controller nodes --json`.
type planeNode struct {
	ID, Name, Hostname, State string
}

func (w *walk) nodes() (all []planeNode) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.alpha.Must("mesh-controller", "nodes", "--all", "--json")), &all); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// newest is the node the machine is, or was last: of those it left, the name has
// the highest number.
func (w *walk) newest(host string) (last planeNode) {
	w.t.Helper()
	for _, n := range w.nodes() {
		newer := last.ID == "" || last.State == "revoked" && n.State != "revoked" || (n.State == "revoked") == (last.State == "revoked") && n.Name > last.Name
		if n.Hostname == host && newer {
			last = n
		}
	}
	return last
}

func (w *walk) of(m *machine.Machine) string {
	n := w.newest(m.Name())
	name := n.Name
	if name == "" {
		name = "(" + n.Hostname + ")"
	}
	return name + " " + n.State
}

// plane is beta as the control plane sees it.
func (w *walk) plane() string { w.t.Helper(); return w.of(w.beta) }

// node is the id of beta's newest node.
func (w *walk) node() string { w.t.Helper(); return w.newest("beta").ID }

// enrol enrols beta with a new token.
func (w *walk) enrol(options ...string) string {
	w.t.Helper()
	w.token = w.alpha.Must(slices.Concat([]string{"mesh-controller", "token", "create"}, options)...)
	return w.again()
}

// again enrols beta with the token it was given last.
func (w *walk) again() string {
	w.t.Helper()
	out, err := w.beta.Pipe(w.t.Context(), strings.NewReader(w.token), "mesh-host", "enrol", "-")
	w.must(err, out)
	return out
}

// declare declares a file, or beta's page and process.
func (w *walk) declare(name, path, text, on string) {
	w.t.Helper()
	document := fmt.Sprintf(`{"schema": 1, "name": %q, "resources": [{"id": "file", "type": "file", "path": %q, "content": %q}]}`, name, path, text+"\n")
	if path == "" {
		document = w.beta.ReadFile("/root/web.json")
	}
	w.alpha.WriteFile("/root/"+name+".json", 0o600, document)
	w.alpha.Must("mesh-controller", "declare", name, "/root/"+name+".json", "--on", on)
}

func (w *walk) journal() string {
	out, _ := w.beta.Run(w.t.Context(), "journalctl", "-u", "mesh-host", "-b", "--no-pager", "-o", "cat")
	return out
}

func (w *walk) must(err error, out string) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
}

// tell says what there is to know of a walk that went wrong.
func (w *walk) tell() {
	for _, look := range []struct {
		m    *machine.Machine
		line string
	}{{w.beta, "mesh-host status"}, {w.beta, "mesh-host owned"}, {w.alpha, "mesh-controller nodes"}, {w.beta, "journalctl -u mesh-host --no-pager -n 40 -o cat"}} {
		out, _ := look.m.Run(w.t.Context(), strings.Fields(look.line)...)
		w.t.Logf("%s: %s\n%s", look.m.Name(), look.line, out)
	}
}

// ownedBy is a line of `mesh-host owned --json`.
type ownedBy struct {
	Key     string
	Adopted bool
}

func owns(t *testing.T, m *machine.Machine) (all []ownedBy) {
	t.Helper()
	out, err := m.Run(t.Context(), "mesh-host", "owned", "--json")
	if err != nil || json.Unmarshal([]byte(out), &all) != nil {
		return nil
	}
	return all
}
