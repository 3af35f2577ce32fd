package command

import (
	"fmt"
	"path"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/internal/apply"
)

// planned is a step of a plan, with what a person should think of before it is
// taken.
type planned struct {
	apply.Step
	Warning string `json:"warning,omitempty"`
}

// warning is about what cannot be put back by the next declaration. The control
// plane of a mesh is a resource like any other, and a declaration that does not
// name it takes it away, in a machine that every node of that mesh asks.
func warning(s apply.Step) string {
	if s.Action != "remove" {
		return ""
	}
	_, name, _ := strings.Cut(s.Key, ":")
	switch strings.TrimSuffix(path.Base(name), ".service") {
	case "mesh-controller", "nox-mesh-controller":
		return "this takes the control plane away: no machine can join its mesh, and no node is told anything, until it is back"
	}
	return ""
}

// warn says a warning once, and which steps it is of.
func (p *program) warn(list []planned) {
	if p.quiet || p.json {
		return
	}
	keys, order := map[string][]string{}, []string{}
	for _, s := range list {
		if s.Warning == "" {
			continue
		}
		if keys[s.Warning] == nil {
			order = append(order, s.Warning)
		}
		keys[s.Warning] = append(keys[s.Warning], s.Key)
	}
	for _, w := range order {
		fmt.Fprintf(p.std.Err, "warning: remove %s: %s\n", strings.Join(keys[w], ", "), w)
	}
}
