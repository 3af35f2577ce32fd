package declaration

import (
	"fmt"
	"strings"
)

// checkReferences wants ids and things to be there once, and after and
// restart_on to name resources without a circle.
func checkReferences(d *Declaration, f *faults) {
	at := func(i int) string { return fmt.Sprintf("resources[%d]", i) }
	ids, claims := map[string]int{}, map[string]int{}
	for i := range d.Resources {
		r := &d.Resources[i]
		if j, ok := ids[r.ID]; ok && r.ID != "" {
			f.once(at(i)+".id", "%q is the id of %s as well", r.ID, at(j))
		} else {
			ids[r.ID] = i
		}
		if !r.named() {
			continue // which is a fault already
		}
		for _, c := range r.Claims() {
			if j, ok := claims[c]; ok && j != i {
				f.add(at(i), "is about %s, as %s is (%q and %q)", shown(c), at(j), r.ID, d.Resources[j].ID)
				break
			}
			claims[c] = i
		}
	}
	for i := range d.Resources {
		r := &d.Resources[i]
		for _, l := range []struct {
			name string
			refs []string
		}{{"after", r.After}, {"restart_on", r.RestartOn}} {
			for n, ref := range l.refs {
				if j, ok := ids[ref]; !ok {
					f.once(fmt.Sprintf("%s.%s[%d]", at(i), l.name, n), "names %s, which is not declared", shown(ref))
				} else if j == i {
					f.once(fmt.Sprintf("%s.%s[%d]", at(i), l.name, n), "names the resource itself")
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

// checkPrograms wants the program of a process that may be rolled back to be a file
// whose content has a name: that is what is held when it failed.
func checkPrograms(d *Declaration, f *faults) {
	for i := range d.Resources {
		p := d.Resources[i].Process
		if p == nil || !p.Rollback || len(p.Command) == 0 || p.Command[0] == "" {
			continue
		}
		at := fmt.Sprintf("resources[%d].rollback", i)
		switch program := d.Program(p); {
		case program == nil:
			f.once(at, "needs the program %s to be a file of this declaration that has a source", shown(p.Command[0]))
		case program.File.Source == "":
			f.once(at, "needs the program %s to have a source, which %s has not", shown(p.Command[0]), shown(program.ID))
		}
	}
}

// Program is the file of this declaration that the process executes, or nil.
func (d *Declaration) Program(p *Process) *Resource {
	for i := range d.Resources {
		if f := d.Resources[i].File; f != nil && len(p.Command) > 0 && f.Path == p.Command[0] {
			return &d.Resources[i]
		}
	}
	return nil
}

// checkOwn refuses a resource that is about the host itself.
func checkOwn(d *Declaration, f *faults) {
	for i := range d.Resources {
		if r := &d.Resources[i]; r.named() {
			for _, own := range r.Own(shipped) {
				f.once(fmt.Sprintf("resources[%d].%s", i, own.Path), "%s", own.Text)
			}
		}
	}
}

// named: so much of it could be read that it can be said what it is about.
func (r *Resource) named() bool {
	_, known := kinds[r.Type]
	return known && r.body().name() != ""
}
