package unit

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// A view is what can be seen of one unit at a moment, beside what is wanted.
type view struct {
	unit   *declaration.Unit
	was    *declaration.Unit // as it was applied last, if it is the host's
	before found
	owned  bool

	wishes map[string]wish
	things map[string]thing
	// over are the paths that were declared and are no more.
	over []string
	// strange are drop-ins that nobody declared for a unit whose text is.
	strange []string
	// mask is where somebody masked it, or "".
	mask string

	status  status
	state   string // of its file
	pending bool   // a change of its files is not in effect
	linked  links
}

// links compares those that there are with what [Install] says.
type links struct {
	missing, extra []string
	// known: there is a text that says what there should be.
	known bool
	// none: it says nothing that could enable the unit.
	none bool
}

// whole: the unit's own text is declared.
func whole(u *declaration.Unit) bool { return u.Content != nil || u.Source != "" }

// template: a unit of no instance yet, of which nothing runs.
func template(name string) bool { return strings.Contains(name, "@.") }

// label names a file for people.
func (v *view) label(file string) string {
	switch {
	case file == v.unit.Path():
		return "its file"
	case path.Dir(file) == v.unit.Path()+".d":
		return "drop-in " + path.Base(file)
	}
	return file
}

// fileDifferences are those between what is declared and the disk.
func (v *view) fileDifferences() []string {
	var out []string
	for _, file := range slices.Sorted(maps.Keys(v.wishes)) {
		if d := v.wishes[file].difference(v.things[file]); d != "" {
			out = append(out, v.label(file)+": "+d)
		}
	}
	for _, file := range v.over {
		if !v.things[file].same(v.target(file)) {
			out = append(out, v.label(file)+": no longer declared")
		}
	}
	for _, file := range v.strange {
		out = append(out, fmt.Sprintf("drop-in %s: not declared, to be kept as %s", file, path.Base(file)+saved))
	}
	if isnt(v.unit.Masked) && v.mask != "" && !(whole(v.unit) && v.mask == v.unit.Path()) {
		out = append(out, "masked by "+v.mask)
	}
	return out
}

// target is what shall be at a path that is no longer declared: what was there
// before, unless the unit is declared as a whole.
func (v *view) target(file string) thing {
	if whole(v.unit) {
		return thing{}
	}
	return v.before.Files[file]
}

// foreign: a file is in the way that is not the host's.
func (v *view) foreign() bool {
	if v.owned {
		return false
	}
	for file, w := range v.wishes {
		t := v.things[file]
		masked := t.masks() && v.unit.Masked != nil // the declaration says what of it
		if t.Kind != "" && !masked && w.difference(t) != "" {
			return true
		}
	}
	if len(v.strange) > 0 {
		return true
	}
	// One that a package brings would be hidden.
	hidden := v.status.Fragment
	return whole(v.unit) && v.things[v.unit.Path()].Kind == "" && hidden != v.unit.Path() && path.Base(hidden) == v.unit.Name
}

// enabledDifference says how the links are not as declared.
func (v *view) enabledDifference() []string {
	u := v.unit
	switch {
	case u.Enabled == nil:
		return nil
	case !*u.Enabled:
		switch v.state {
		case "enabled", "enabled-runtime":
			return []string{v.state}
		}
		return nil
	case v.linked.known:
		var out []string
		for _, l := range v.linked.missing {
			out = append(out, "not enabled: no link "+l)
		}
		for _, l := range v.linked.extra {
			out = append(out, "enabled by a link that its [Install] does not say: "+l)
		}
		if v.linked.none {
			out = append(out, "it has no [Install] section")
		}
		return out
	}
	switch v.state {
	case "enabled", "indirect":
		return nil
	case "":
		return []string{"not enabled"}
	}
	return []string{"not enabled: " + v.state}
}

// activeDifference says how it does not run as declared.
func (v *view) activeDifference() string {
	u, s := v.unit, v.status
	switch {
	case u.Active == nil || template(u.Name):
		return ""
	case *u.Active && !s.runs():
		return s.down()
	case !*u.Active && (s.runs() || s.Active == "deactivating"):
		return s.Active
	}
	return ""
}

func (v *view) differences() []string {
	out := v.fileDifferences()
	if v.status.NeedReload && len(v.things) > 0 {
		out = append(out, "systemd has not read its files since they changed")
	}
	out = append(out, v.enabledDifference()...)
	if d := v.activeDifference(); d != "" {
		out = append(out, d)
	}
	if v.due() {
		out = append(out, "it runs as its files were before")
	}
	return out
}

// due: what runs does not know yet of the last change.
func (v *view) due() bool {
	return v.pending && v.status.runs() && v.unit.OnChange != declaration.OnChangeNone
}

// exists: there is such a unit, or a part of it.
func (v *view) exists() bool {
	for _, t := range v.things {
		if t.Kind != "" {
			return true
		}
	}
	return v.mask != "" || v.state != "" || v.status.Load != "" && v.status.Load != "not-found"
}

// found describes what is there before the host touches anything.
func (v *view) found(k *Kind) (json.RawMessage, error) {
	f := found{Known: v.status.Load != "" && v.status.Load != "not-found", Active: v.status.runs(), Enabled: v.state, Files: map[string]thing{}}
	for file, t := range v.things {
		if t.Kind != "" && t.Kind != "other" {
			f.Files[file] = t
		}
	}
	if v.unit.Masked != nil && v.mask != "" {
		f.Files[v.mask] = thing{Kind: "symlink", Target: null}
	}
	if len(v.unit.DropIns) > 0 {
		d, err := k.folder(v.unit.DropInPath("x"), false)
		if err == nil {
			f.Folder = true
			d.Close()
		}
	}
	return f.raw()
}
