package declaration

import (
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

const notYours = "which the installation owns and no declaration may name"

// shipped is what is the host's own on every machine.
var shipped = layout.OwnPaths(layout.FloorPrefix, layout.PackagePrefix)

// ownName refuses the host's own name for what is kept up beside it.
func ownName(name string, say func(member, why string)) {
	if name == layout.HostName {
		say("name", shown(name)+" is the host's own name, which no declaration may use")
	}
}

// Own says how the resource touches what is the host's own by the list: its
// unit, its state, its trust, its socket. The installation owns those. The
// host's binary and its package may be declared. (Detours that only the machine
// shows, such as a symlink or a mount on the way, are for the host to refuse
// there: it asks again, of a copy with the real paths.) The paths of the faults
// are the members'.
func (r *Resource) Own(own []layout.Own) []Fault {
	var out []Fault
	r.body().own(own, func(member, why string) { out = append(out, Fault{member, why}) })
	return out
}

func inUnitDir(p string) bool {
	return slices.ContainsFunc(layout.UnitDirs, func(d string) bool { return under(p, d) })
}

func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// ownPath says what of the host's own a path is, or "": its unit in any
// spelling, or anything in the list.
func ownPath(p string, own []layout.Own) string {
	units := inUnitDir(p)
	for name := range strings.SplitSeq(p, "/") {
		bare := strings.TrimSuffix(name, ".d")
		if bare == layout.HostUnit || strings.HasPrefix(bare, layout.HostName+"@") && path.Ext(bare) == ".service" || units && ownUnit(name) {
			return "the host's own unit"
		}
	}
	for _, o := range own {
		if under(p, o.Path) {
			return o.What
		}
	}
	return ""
}

// parentOf says what of the host's own lies below p, or "".
func parentOf(p string, own []layout.Own) string {
	for _, o := range own {
		if p == "/" || strings.HasPrefix(o.Path, p+"/") {
			return o.What
		}
	}
	return ""
}
