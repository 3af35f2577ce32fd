//go:build machine

package walk

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/lab/walk/look"
)

// A resource is one of a declaration: a file, or a process.
type resource struct {
	id    string
	after []string
	// born orders resources: one is only ever after an older one, so there is
	// no circle.
	born int

	path     string
	thing    look.Thing
	takeOver bool
	// nobody: its owner is an account that does not exist.
	nobody bool

	process *process
}

// A process is kept up, or runs once.
type process struct {
	name  string
	once  bool
	n     int
	env   string
	uid   uint32
	reads string // the path of a file that restarts it
}

// A declaration is what the machine shall have.
type declaration struct {
	generation int
	resources  []resource
}

func (d declaration) clone() declaration {
	c := declaration{d.generation, slices.Clone(d.resources)}
	for i := range c.resources {
		r := &c.resources[i]
		r.after = slices.Clone(r.after)
		if r.process != nil {
			p := *r.process
			r.process = &p
		}
	}
	return c
}

// at is the index of the file at the path, or -1.
func (d declaration) at(path string) int {
	return slices.IndexFunc(d.resources, func(r resource) bool { return r.process == nil && r.path == path })
}

// named is the index of the process, or -1.
func (d declaration) named(name string) int {
	return slices.IndexFunc(d.resources, func(r resource) bool { return r.process != nil && r.process.name == name })
}

// needed reports whether another resource names the id.
func (d declaration) needed(id string) bool {
	return slices.ContainsFunc(d.resources, func(r resource) bool {
		if slices.Contains(r.after, id) {
			return true
		}
		return r.process != nil && r.process.reads != "" && d.resources[d.at(r.process.reads)].id == id
	})
}

// drop takes resources away, and the mention of them.
func (d *declaration) drop(gone func(resource) bool) {
	ids, paths := map[string]bool{}, map[string]bool{}
	for _, r := range d.resources {
		if gone(r) {
			ids[r.id], paths[r.path] = true, r.process == nil
		}
	}
	d.resources = slices.DeleteFunc(d.resources, func(r resource) bool { return ids[r.id] })
	for i := range d.resources {
		r := &d.resources[i]
		r.after = slices.DeleteFunc(r.after, func(id string) bool { return ids[id] })
		if r.process != nil && paths[r.process.reads] {
			r.process.reads = ""
		}
	}
}

const beatPath = "/usr/lib/walk/beat"

// arguments are the command of a process.
func (p process) arguments() []string {
	how := "run"
	if p.once {
		how = "once"
	}
	args := []string{beatPath, p.name, how}
	switch {
	case p.reads != "":
		args = append(args, p.reads, fmt.Sprint(p.n))
	default:
		args = append(args, "/nothing", fmt.Sprint(p.n))
	}
	return args
}

func (p process) environment(beats string) map[string]string {
	env := map[string]string{"BEATS": beats}
	if p.env != "" {
		env["WALK"] = p.env
	}
	return env
}

// document is the declaration as the host reads it.
func (d declaration) document(beats string) []byte {
	list := []map[string]any{}
	for _, r := range d.resources {
		m := map[string]any{"id": r.id}
		if len(r.after) > 0 {
			m["after"] = r.after
		}
		if r.process == nil {
			m["type"], m["path"] = "file", r.path
			m["owner"], m["group"] = fmt.Sprint(r.thing.UID), fmt.Sprint(r.thing.GID)
			if r.nobody {
				m["owner"] = "nobody-of-that-name"
			}
			if r.takeOver {
				m["take_over"] = true
			}
			switch r.thing.Kind {
			case 'f':
				m["content"] = r.thing.Text
			case 'd':
				m["directory"] = true
			case 'l':
				m["target"] = r.thing.Text
			}
			if r.thing.Kind != 'l' {
				m["mode"] = fmt.Sprintf("%04o", r.thing.Mode)
			}
		} else {
			p := r.process
			m["type"], m["name"], m["command"], m["env"] = "process", p.name, p.arguments(), p.environment(beats)
			// The walk kills it more often than a program may fail.
			m["failure_limit"] = 1000
			if p.uid != 0 {
				m["user"] = fmt.Sprint(p.uid)
			}
			if p.once {
				m["run"] = "once"
			}
			if p.reads != "" {
				m["restart_on"] = []string{d.resources[d.at(p.reads)].id}
			}
		}
		list = append(list, m)
	}
	b, err := json.MarshalIndent(map[string]any{"schema": 1, "name": "walk", "generation": d.generation, "resources": list}, "", " ")
	if err != nil {
		panic(err)
	}
	return b
}

// A world is what the machine shall be, by the contract alone.
type world struct {
	// tree is all that is there, but for directories that are only on the way
	// to something and were not there before.
	tree map[string]look.Thing
	// owned are the files that the host owns.
	owned map[string]owned
}

type owned struct {
	id   string
	want look.Thing
	// before is what was there before the host came, or nil.
	before *look.Thing
	// adopted: that was as declared.
	adopted bool
}

func (w world) clone() world { return world{maps.Clone(w.tree), maps.Clone(w.owned)} }

// apply is what an apply makes of the world. It returns the ids of what is
// refused: nothing takes the place of a directory, a directory takes none, and
// an owner must exist.
func (w world) apply(d declaration) map[string]bool {
	declared := map[string]resource{}
	for _, r := range d.resources {
		if r.process == nil {
			declared[r.path] = r
		}
	}
	paths := slices.Sorted(maps.Keys(w.owned))
	slices.Reverse(paths) // what is in a directory before the directory
	for _, p := range paths {
		if _, ok := declared[p]; !ok {
			w.remove(p)
		}
	}
	refused := map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(declared)) {
		if !w.place(declared[p]) {
			refused[declared[p].id] = true
		}
	}
	return refused
}

// place makes one file as declared.
func (w world) place(r resource) bool {
	have, there := w.tree[r.path]
	o, known := w.owned[r.path]
	if r.nobody || there && have.Kind != r.thing.Kind && (r.thing.Kind == 'd' || have.Kind != 'f' && have.Kind != 'l') {
		return false
	}
	if !known && there {
		o.before, o.adopted = &have, have == r.thing
	}
	o.id, o.want = r.id, r.thing
	w.tree[r.path], w.owned[r.path] = r.thing, o
	return true
}

// remove takes away one file that is no longer declared, or gives back what was
// there. What somebody changed since is kept beside.
func (w world) remove(p string) {
	w.takeAway(p)
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		if _, known := w.tree[dir]; !known && w.within(dir) && !w.ownedWithin(dir) {
			// What somebody has there keeps the directory.
			w.tree[dir] = look.Thing{Kind: 'd', Mode: 0o755}
		}
	}
}

func (w world) ownedWithin(dir string) bool {
	for p := range w.owned {
		if strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

func (w world) takeAway(p string) {
	have, there := w.tree[p]
	o := w.owned[p]
	delete(w.owned, p)
	switch {
	case !there:
	case o.adopted && content(*o.before) == content(o.want):
		// It was there, and stays.
	case o.want.Kind == 'd' && have.Kind == 'd':
		if o.before != nil && o.before.Kind == 'd' {
			w.tree[p] = *o.before
		} else if !w.within(p) {
			delete(w.tree, p)
		}
	case o.want.Kind == 'd' || have.Kind != 'f' && have.Kind != 'l':
		// Somebody put it there.
	default:
		back := o.before != nil && (o.before.Kind == 'f' || o.before.Kind == 'l')
		if back && have == *o.before {
			return
		}
		if content(have) != content(o.want) {
			w.tree[w.saved(p)] = have
		}
		delete(w.tree, p)
		if back {
			w.tree[p] = *o.before
		}
	}
}

// content is a thing without mode and owner.
func content(t look.Thing) look.Thing { return look.Thing{Kind: t.Kind, Text: t.Text} }

func (w world) within(dir string) bool {
	for p := range w.tree {
		if strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

// saved is where something that was at p is kept.
func (w world) saved(p string) string {
	for i := 0; ; i++ {
		name := p + ".nox-saved"
		if i > 0 {
			name += fmt.Sprintf(".%d", i)
		}
		if _, there := w.tree[name]; !there {
			return name
		}
	}
}

// files is all that shall be there.
func (w world) files() map[string][]look.Thing {
	all := map[string][]look.Thing{}
	for p, t := range w.tree {
		all[p] = []look.Thing{t}
	}
	onTheWay := func(p string) {
		for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = []look.Thing{{Kind: 'd', Mode: 0o755}}
			}
		}
	}
	for p := range w.tree {
		onTheWay(p)
	}
	for p := range w.owned { // also when somebody deleted it
		onTheWay(p)
	}
	return all
}

// processes are those that shall run.
func (d declaration) processes(root, beats string) map[string]look.Process {
	out := map[string]look.Process{}
	for _, r := range d.resources {
		if r.process == nil {
			continue
		}
		p := r.process
		env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "NOX_ROOT=" + root}
		for k, v := range p.environment(beats) {
			env = append(env, k+"="+v)
		}
		out[p.name] = look.Process{Exe: root + beatPath, Args: p.arguments(), Env: env, UID: p.uid, GID: p.uid, Over: p.once}
	}
	return out
}
