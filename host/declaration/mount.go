package declaration

import (
	"fmt"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Mount is something of the machine that is seen in a container. Exactly one
// of Path, Volume and Tmpfs is given.
type Mount struct {
	// Target is where it is seen.
	Target string
	// Path is the machine's.
	Path string
	// Volume is one the runtime keeps by that name; it is made when it is not
	// there, and stays.
	Volume string
	// Tmpfs is memory, gone with the container.
	Tmpfs    bool
	ReadOnly bool
}

func (m *Mount) fields() []field {
	return []field{
		{"target", text[string]{&m.Target, pathRule, ""}, true, "Where it is seen in the container."},
		{"path", text[string]{&m.Path, directoryRule, ""}, false, "A file or directory of the machine."},
		{"volume", text[string]{&m.Volume, containerRule, ""}, false, "A volume of the runtime's, by name. It is made when it is not there, and stays."},
		{"tmpfs", only{flag{&m.Tmpfs}}, false, "Memory that is gone with the container."},
		{"read_only", flag{&m.ReadOnly}, false, "It cannot be written from the container."},
	}
}

func (m *Mount) check(o *object) {
	if len(o.given("path", "volume", "tmpfs")) != 1 {
		o.faults.add(o.path, "needs exactly one of path, volume, tmpfs")
	}
}

var mountRules = node{"oneOf": []node{required("path"), required("volume"), required("tmpfs")}}

// Own says how the mount touches what is the host's own by the list, or "". A
// host that knows where the path really leads asks again, of a copy with that
// path.
func (m *Mount) Own(own []layout.Own) string {
	if m.Path == "" {
		return ""
	}
	if what := ownPath(m.Path, own); what != "" {
		return fmt.Sprintf("%s is %s, %s", shown(m.Path), what, notYours)
	}
	if what := parentOf(m.Path, own); what != "" && !m.ReadOnly {
		return fmt.Sprintf("%s leads to %s and can only be mounted \"read_only\"", shown(m.Path), what)
	}
	return ""
}
