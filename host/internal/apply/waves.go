package apply

import (
	"iter"
	"path"
	"slices"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// A together is a kind whose resources can be worked on at the same time, and
// are the quicker for it.
type together interface {
	// Together returns the kind for exactly n calls, of Apply or of Remove,
	// that are made at the same time.
	Together(n int) resource.Kind
}

// maxWave bounds a wave: each member has files open, and the store takes the
// records of one in one transaction.
const maxWave = 256

// A member is what a wave needs to know of a resource.
type member struct {
	// sort is the same for those that may be in one wave; "" is for one that
	// is alone.
	sort string
	id   string
	// after are the ids of resources that must be done before.
	after []string
	// path is that of a file, or of a unit's.
	path string
}

func (e *Engine) memberOf(r *declaration.Resource) member {
	m := member{id: r.ID, after: append(slices.Clone(r.After), r.RestartOn...)}
	if _, ok := e.Kinds[r.Type].(together); !ok {
		return m
	}
	switch {
	case r.File != nil:
		m.path, m.sort = r.File.Path, string(r.Type)
		if r.File.Target != "" {
			// Where a path leads must not change while others go that way.
			m.sort += " symlink"
		}
	case r.Unit != nil:
		m.path, m.sort = r.Unit.Path(), string(r.Type)
	}
	return m
}

// waves sorts a list, given in the order to work through it, into what can be
// worked on at the same time, as indices: neighbours of one sort, each after
// all that it waits for.
func waves(list []member) [][]int { return cut(list, levels) }

// runs is waves that never goes ahead of the list: what is removed last made
// directories that the others are in.
func runs(list []member) [][]int { return cut(list, inOrder) }

func cut(list []member, sorted func([]member) [][]int) [][]int {
	var out [][]int
	for start := 0; start < len(list); {
		end := start + 1
		for end < len(list) && list[start].sort != "" && list[end].sort == list[start].sort {
			end++
		}
		for _, group := range sorted(list[start:end]) {
			for chunk := range slices.Chunk(group, maxWave) {
				wave := make([]int, len(chunk))
				for i, n := range chunk {
					wave[i] = start + n
				}
				out = append(out, wave)
			}
		}
		start = end
	}
	return out
}

// levels sorts members by what they wait for among themselves: those of one
// level wait for levels before it only.
func levels(list []member) [][]int {
	var out [][]int
	seen := newOrder()
	for i, m := range list {
		level := seen.first(m)
		if level == len(out) {
			out = append(out, nil)
		}
		out[level] = append(out[level], i)
		seen.add(m, level)
	}
	return out
}

// inOrder keeps the order, and begins anew at each that waits for one before.
func inOrder(list []member) [][]int {
	out := [][]int{nil}
	seen := newOrder()
	for i, m := range list {
		if seen.first(m) > 0 {
			out, seen = append(out, nil), newOrder()
		}
		out[len(out)-1] = append(out[len(out)-1], i)
		seen.add(m, 0)
	}
	return out
}

// An order knows what waits for what: a resource for those it is after, a path
// for the directories it is in, a directory for what is in it. Each map has the
// first level that may follow an id, a path, or what is below a path.
type order struct{ ids, paths, below map[string]int }

func newOrder() order { return order{map[string]int{}, map[string]int{}, map[string]int{}} }

// first is the first level that m may be in.
func (o order) first(m member) int {
	level := max(o.paths[m.path], o.below[m.path])
	for _, id := range m.after {
		level = max(level, o.ids[id])
	}
	for dir := range parents(m.path) {
		level = max(level, o.paths[dir])
	}
	return level
}

func (o order) add(m member, level int) {
	o.ids[m.id], o.paths[m.path] = level+1, level+1
	for dir := range parents(m.path) {
		o.below[dir] = max(o.below[dir], level+1)
	}
}

// parents are the directories that a path is in, but the root.
func parents(p string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for dir := path.Dir(p); len(dir) > 1 && yield(dir); dir = path.Dir(dir) {
		}
	}
}
