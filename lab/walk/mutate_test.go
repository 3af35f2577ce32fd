//go:build machine

package walk

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/lab/walk/look"
)

// dice is the one source of chance in what a walk does.
type dice struct{ *rand.Rand }

func (d dice) chance(p float64) bool { return d.Float64() < p }

func pick[T any](d dice, list []T) T { return list[d.IntN(len(list))] }

// The places of files. box is a directory whenever it is declared, and in it
// something only then. Some share a directory that the host has to make, which goes
// with the last of them.
const box = "/srv/box"

var places = []string{
	"/srv/w/a", "/srv/w/b", "/srv/v/a", "/srv/u/a", "/srv/deep/er/x", "/srv/deep/er/y", "/srv/deep/z", "/srv/deeper/still/y", "/srv/z",
	"/etc/walk/one", "/etc/walk/two", "/etc/walk/file", "/etc/walk/link", "/etc/walk/dir",
	box, box + "/in", box + "/on",
}

var processes = []string{"p1", "p2", "p3", "once"}

// maxProcesses bounds how long an apply takes.
const maxProcesses = 3

// A walker makes the next declaration of the one before.
type walker struct {
	dice
	born int
}

func (w *walker) thing(path string) look.Thing {
	owner := pick(w.dice, []uint32{0, 0, 0, 7, 12345})
	kind := pick(w.dice, []byte("ffffflld"))
	if path == box {
		kind = 'd'
	}
	t := look.Thing{Kind: kind, UID: owner, GID: owner}
	switch kind {
	case 'f':
		t.Text = w.text()
		t.Mode = pick(w.dice, []uint32{0o644, 0o644, 0o600, 0o755, 0o444, 0, 0o4755, 0o2750})
	case 'd':
		t.Mode = pick(w.dice, []uint32{0o755, 0o700, 0o750, 0o1777})
	case 'l':
		t.Text = pick(w.dice, []string{"/etc/walk/other", "nowhere", "../walk/one", "/dev/null", "."})
	}
	return t
}

func (w *walker) text() string {
	return strings.Repeat(fmt.Sprintf("line %d\n", w.IntN(1_000_000)), pick(w.dice, []int{0, 1, 1, 3, 600, 20_000}))
}

func (w *walker) newID() string { w.born++; return fmt.Sprintf("r%d", w.born) }

// next is a mutation of d.
func (w *walker) next(d declaration) declaration {
	n := d.clone()
	n.generation++
	switch {
	case w.chance(0.02):
		n.resources = nil
		return n
	case w.chance(0.03):
		return n
	}
	for range 1 + w.IntN(5) {
		w.mutate(&n)
	}
	return n
}

func (w *walker) mutate(d *declaration) {
	if len(d.resources) < 6 {
		w.add(d)
		return
	}
	r := &d.resources[w.IntN(len(d.resources))]
	switch w.IntN(12) {
	case 0, 1, 2:
		w.add(d)
	case 3:
		w.leave(d, r.id)
	case 4:
		w.rename(d, r)
	case 5: // moved
		if free := w.free(*d); r.process == nil && r.path != box && len(free) > 0 {
			w.move(d, r, pick(w.dice, free))
		}
	case 6:
		w.Shuffle(len(d.resources), func(i, j int) {
			d.resources[i], d.resources[j] = d.resources[j], d.resources[i]
		})
	case 7:
		if other := pick(w.dice, d.resources); other.born < r.born && !slices.Contains(r.after, other.id) {
			r.after = append(r.after, other.id)
		} else if len(r.after) > 0 && !strings.HasPrefix(r.path, box+"/") {
			r.after = r.after[1:]
		}
	default:
		w.change(d, r)
	}
}

// free are the places where something may be declared that is not yet.
func (w *walker) free(d declaration) []string {
	return slices.DeleteFunc(slices.Clone(places), func(p string) bool {
		return d.at(p) >= 0 || strings.HasPrefix(p, box+"/") && d.at(box) < 0
	})
}

func (w *walker) add(d *declaration) {
	running := 0
	for _, r := range d.resources {
		if r.process != nil {
			running++
		}
	}
	if w.chance(0.3) && running < maxProcesses {
		name := pick(w.dice, processes)
		if d.named(name) < 0 {
			id := w.newID()
			r := resource{id: id, born: w.born, process: &process{name: name, once: name == "once"}}
			w.changeProcess(d, &r)
			d.resources = append(d.resources, r)
		}
		return
	}
	free := w.free(*d)
	if len(free) == 0 {
		return
	}
	r := resource{path: pick(w.dice, free), takeOver: w.chance(0.2)}
	r.id, r.thing = w.newID(), w.thing(r.path)
	r.born = w.born
	w.inBox(d, &r)
	d.resources = slices.Insert(d.resources, w.IntN(len(d.resources)+1), r)
}

// inBox makes what is in the box wait for it.
func (w *walker) inBox(d *declaration, r *resource) {
	if strings.HasPrefix(r.path, box+"/") {
		r.after = []string{d.resources[d.at(box)].id}
	}
}

func (w *walker) leave(d *declaration, id string) {
	d.drop(func(r resource) bool { return r.id == id })
	if d.at(box) < 0 {
		d.drop(func(r resource) bool { return strings.HasPrefix(r.path, box+"/") })
	}
}

func (w *walker) rename(d *declaration, r *resource) {
	old, born := r.id, w.born
	r.id = w.newID()
	w.born = born + 1
	for i := range d.resources {
		if n := slices.Index(d.resources[i].after, old); n >= 0 {
			d.resources[i].after[n] = r.id
		}
	}
}

func (w *walker) move(d *declaration, r *resource, to string) {
	for i := range d.resources {
		if p := d.resources[i].process; p != nil && p.reads == r.path {
			p.reads = ""
		}
	}
	r.path = to
	if to == box || strings.HasPrefix(to, box+"/") {
		r.thing = w.thing(to)
		r.after = nil
		// Younger than the box, whatever it was before.
		w.born++
		r.born = w.born
		for i := range d.resources {
			d.resources[i].after = slices.DeleteFunc(d.resources[i].after, func(id string) bool { return id == r.id })
		}
		w.inBox(d, r)
	}
}

func (w *walker) change(d *declaration, r *resource) {
	if r.process != nil {
		w.changeProcess(d, r)
		return
	}
	fresh := w.thing(r.path)
	switch t := &r.thing; {
	case w.chance(0.25):
		*t = fresh
	case w.chance(0.2):
		t.UID = pick(w.dice, []uint32{0, 7, 12345})
	case w.chance(0.3) && fresh.Kind == t.Kind:
		t.Mode = fresh.Mode
	case fresh.Kind == t.Kind && t.Kind != 'd':
		t.Text = fresh.Text
	case w.chance(0.2):
		r.takeOver = !r.takeOver
	case !d.needed(r.id) && w.chance(0.4):
		r.nobody = !r.nobody
	}
	// A reader of the file may be another user's.
	for i := range d.resources {
		if p := d.resources[i].process; p != nil && p.reads == r.path && r.thing.Kind != 'f' {
			p.reads = ""
		}
	}
}

func (w *walker) changeProcess(d *declaration, r *resource) {
	p := r.process
	switch w.IntN(4) {
	case 0:
		p.n++
	case 1:
		p.env = fmt.Sprintf("a=%d b", w.IntN(100))
	case 2:
		p.uid = pick(w.dice, []uint32{0, 12345})
	case 3:
		p.reads = ""
		var files []string
		for _, f := range d.resources {
			if f.process == nil && f.thing.Kind == 'f' && f.born < r.born {
				files = append(files, f.path)
			}
		}
		if len(files) > 0 {
			p.reads = pick(w.dice, files)
		}
	}
}
