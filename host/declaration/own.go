package declaration

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

const notYours = "which the installation owns and no declaration may name"

// shipped is what is the host's own on every machine.
var shipped = layout.OwnPaths(layout.FloorPrefix, layout.PackagePrefix)

// checkOwn refuses a resource that is about the host itself: its unit, its
// state, its trust, its socket. The installation owns those. The host's binary
// and its package may be declared. (Detours that only the machine shows, such
// as a symlink or a mount on the way, are for the host to refuse there.)
func checkOwn(d *Declaration, f *faults) {
	for i := range d.Resources {
		r := &d.Resources[i]
		here := fmt.Sprintf("resources[%d]", i)
		switch {
		case r.File != nil:
			if member, why := r.File.Own(shipped); why != "" {
				f.add(here+"."+member, "%s", why)
			}
		case r.Process != nil:
			if r.Process.Name == layout.HostName {
				f.add(here+".name", "%q is the host's own name, which no declaration may use", r.Process.Name)
			}
		}
	}
}

// Own says how the file touches what is the host's own by the list, and the
// member of the document that does; why is "" when none does. Nothing is
// looked up: a host that knows where the path really leads asks again, of a
// copy with that path.
func (f *File) Own(own []layout.Own) (member, why string) {
	if what := ownPath(f.Path, own); what != "" {
		return "path", fmt.Sprintf("%q is %s, %s", f.Path, what, notYours)
	}
	if what := parentOf(f.Path, own); what != "" {
		switch {
		case !f.Directory:
			return "path", fmt.Sprintf("%q leads to %s and can only be a directory", f.Path, what)
		case f.Mode&0o022 != 0:
			return "mode", fmt.Sprintf("%q leads to %s: no one but its owner may write there (%04o)", f.Path, what, f.Mode)
		case f.Owner != "root" && f.Owner != "0":
			return "owner", fmt.Sprintf("%q leads to %s and can only be root's", f.Path, what)
		}
	}
	if f.Target != "" {
		to := f.Leads()
		if what := ownPath(to, own); what != "" {
			return "target", fmt.Sprintf("%q is %s, %s", to, what, notYours)
		}
		// What lies elsewhere, or is not called so, is not looked at as a unit
		// when it is written. systemd reads more directories than have a name
		// that says so (system.control, generator.late), so the name of the
		// symlink does not count.
		if f.InUnitDir() && to != "/dev/null" {
			switch {
			case !inUnitDir(to):
				return "target", fmt.Sprintf("%q is no place of units: a symlink in systemd's directories can only lead into one of them or to /dev/null", to)
			case UnitText(path.Base(f.Path)) && !UnitText(path.Base(to)):
				return "target", fmt.Sprintf("%q is not the name of a unit: what systemd reads as one can only be a symlink to another or to /dev/null", to)
			}
		}
	}
	if f.Content != nil && f.InUnitDir() {
		if why := OwnInUnit(*f.Content); why != "" {
			return "content", why
		}
	}
	return "", ""
}

// Leads is the path a symlink's target is, with no other symlink looked at.
func (f *File) Leads() string {
	if path.IsAbs(f.Target) {
		return path.Clean(f.Target)
	}
	return path.Join(path.Dir(f.Path), f.Target)
}

// InUnitDir reports whether the file lies where systemd reads units from, so
// that its content, wherever it comes from, is for OwnInUnit to look at.
func (f *File) InUnitDir() bool { return inUnitDir(f.Path) }

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
