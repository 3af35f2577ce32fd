package declaration

import (
	"fmt"
	"path"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// checkReferences wants ids and things to be there once, and after and
// restart_on to name resources without a circle.
func checkReferences(d *Declaration, f *faults) {
	at := func(i int) string { return fmt.Sprintf("resources[%d]", i) }
	ids, keys := map[string]int{}, map[string]int{}
	for i := range d.Resources {
		r := &d.Resources[i]
		if j, ok := ids[r.ID]; ok && r.ID != "" {
			f.add(at(i)+".id", "%q is the id of %s as well", r.ID, at(j))
		} else {
			ids[r.ID] = i
		}
		if j, ok := keys[r.Key()]; ok {
			f.add(at(i), "is about %q, as %s is", r.Key(), at(j))
		} else {
			keys[r.Key()] = i
		}
	}
	for i := range d.Resources {
		r := &d.Resources[i]
		for _, l := range []struct {
			name string
			refs []string
		}{{"after", r.After}, {"restart_on", r.RestartOn}} {
			for n, ref := range l.refs {
				here := fmt.Sprintf("%s.%s[%d]", at(i), l.name, n)
				if j, ok := ids[ref]; !ok {
					f.add(here, "names %q, which is not declared", ref)
				} else if j == i {
					f.add(here, "names the resource itself")
				}
			}
		}
	}
	if len(f.list) == 0 {
		if _, cycle := d.order(); cycle != nil {
			if len(cycle) > 12 {
				cycle = append(append(cycle[:10:10], "…"), cycle[len(cycle)-1])
			}
			f.add("resources", "wait for each other in a circle: %s", strings.Join(cycle, " -> "))
		}
	}
}

// unitDirs are where systemd reads units from (systemd.unit(5)).
var unitDirs = []string{"/etc/systemd/", "/run/systemd/", "/usr/lib/systemd/", "/lib/systemd/", "/usr/local/lib/systemd/"}

// checkOwn refuses a resource that is about the host itself: its unit, its
// state, its trust, its socket. The installation owns those. The host's binary
// and its package may be declared. (Symlinks and hard links that lead there
// are for the host to refuse, on the machine.)
func checkOwn(d *Declaration, f *faults) {
	for i := range d.Resources {
		r := &d.Resources[i]
		here := fmt.Sprintf("resources[%d]", i)
		switch {
		case r.File != nil:
			if what := OwnPath(r.File.Path); what != "" {
				f.add(here+".path", "%q is %s, which the installation owns and no declaration may name", r.File.Path, what)
			}
			if c := r.File.Content; c != nil && inUnitDir(r.File.Path) && strings.Contains(*c, layout.HostUnit) {
				f.add(here+".content", "names %q, which the installation owns and no declaration may name", layout.HostUnit)
			}
		case r.Process != nil:
			if r.Process.Name == layout.HostName {
				f.add(here+".name", "%q is the host's own name, which no declaration may use", r.Process.Name)
			}
		}
	}
}

func inUnitDir(p string) bool {
	for _, d := range unitDirs {
		if strings.HasPrefix(p, d) {
			return true
		}
	}
	return false
}

// OwnPath says what of the host's own a path is, or "": its unit in any
// spelling, or anything in its state, trust, configuration or runtime folders.
func OwnPath(p string) string {
	for c := range strings.SplitSeq(p, "/") {
		name := strings.TrimSuffix(c, ".d")
		if name == layout.HostUnit || strings.HasPrefix(name, layout.HostName+"@") && path.Ext(name) == ".service" {
			return "the host's own unit"
		}
	}
	m := layout.Layout{}
	for _, own := range []struct{ dir, what string }{
		{m.State(), "the host's own state"},
		{m.AdminTrust(), "the host's own trust"},
		{m.ShippedTrust("/usr/local"), "the host's own trust"},
		{m.ShippedTrust("/usr"), "the host's own trust"},
		{m.HostConfig(), "the host's own configuration"},
		{path.Dir(m.HostSocket()), "the host's own runtime folder"},
	} {
		if p == own.dir || strings.HasPrefix(p, own.dir+"/") {
			return own.what
		}
	}
	return ""
}
