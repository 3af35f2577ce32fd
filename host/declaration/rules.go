package declaration

import (
	"fmt"
	"strings"
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
