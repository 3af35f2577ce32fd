//go:build machine

package walk

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/walk/look"
)

// cut applies a declaration and kills that, and more, at some instant.
func (r *run) cut(d, then declaration) error {
	file, err := r.write(d)
	if err != nil {
		return err
	}
	span := 2*r.quiet + 60*time.Millisecond
	if r.chance(0.5) {
		span += time.Duration(r.changes(d)) * 400 * time.Millisecond
	}
	after := time.Duration(r.Float64() * float64(span))
	all, one, which := r.chance(0.1), r.chance(0.3), r.IntN(1000)
	hit, err := r.kill(after, "apply", file)
	if err != nil {
		return err
	}
	r.kills++
	if hit {
		r.hits++
	}
	r.say("apply %d killed after %s (in the middle: %v)", d.generation, after.Round(time.Millisecond), hit)
	if !all && !one {
		return nil
	}
	running, err := look.From(r.root)
	if err != nil || len(running) == 0 {
		return err
	}
	slices.SortFunc(running, func(a, b look.Running) int { return a.PID - b.PID })
	if !all {
		i := which % len(running)
		running = running[i : i+1]
	}
	for _, p := range running {
		name := p.Shim()
		if name == "" && len(p.Args) > 1 {
			name = p.Args[1]
			if r.killed[name] && !all {
				continue
			}
			r.killed[name] = true
		}
		r.ended++
		r.say("killed %v", p)
		if err := p.Signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	return nil
}

// changes are how many processes d starts, stops or restarts, about.
func (r *run) changes(d declaration) int {
	n, was, is := 0, r.now.processes("", ""), d.processes("", "")
	for name := range maps.Keys(is) {
		if fmt.Sprint(is[name]) != fmt.Sprint(was[name]) {
			n++
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			n++
		}
	}
	return n
}
