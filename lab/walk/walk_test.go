//go:build machine

package walk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/walk/look"
)

// A run is one walk.
type run struct {
	*bench
	*walker
	world world
	now   declaration // in force
	round int
	// journal is what was done in each round, for who has to find the fault.
	journal [][]string
	// quiet is how long an apply takes that finds nothing to do.
	quiet time.Duration

	kills, hits, drifts, ended, refusals int
	// killed are the processes that were killed since they were declared as they
	// are: a second time, the shim would pause for long.
	killed map[string]bool
}

func (r *run) say(format string, args ...any) {
	last := len(r.journal) - 1
	r.journal[last] = append(r.journal[last], fmt.Sprintf(format, args...))
}

func number(t *testing.T, name string, otherwise int) int {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func TestH01H03R02Walk(t *testing.T) {
	seed := number(t, "NOX_WALK_SEED", int(time.Now().UnixNano()%1_000_000))
	rounds, enough := number(t, "NOX_WALK_ROUNDS", 0), time.Duration(0)
	switch {
	case rounds > 0:
	case os.Getenv("NOX_WALK_FULL") != "":
		rounds = 500
	default:
		rounds, enough = 500, 30*time.Second
	}
	t.Logf("seed %d", seed)
	b := newBench(t)
	d := dice{rand.New(rand.NewPCG(uint64(seed), 0))}
	r := &run{bench: b, walker: &walker{dice: d}, world: world{maps.Clone(b.start), map[string]owned{}}, killed: map[string]bool{}}
	begin := time.Now()
	err := r.all(rounds, func() bool { return enough > 0 && time.Since(begin) > enough })
	t.Logf("%d rounds in %s; %d applies killed, %d of them before their end; %d shims and processes killed; %d drifts; %d refusals",
		r.round, time.Since(begin).Round(time.Second), r.kills, r.hits, r.ended, r.drifts, r.refusals)
	if err == nil {
		return
	}
	var story strings.Builder
	for i := max(0, len(r.journal)-4); i < len(r.journal); i++ {
		fmt.Fprintf(&story, "round %d:\n  %s\n", i+1, strings.Join(r.journal[i], "\n  "))
	}
	t.Errorf("round %d: %v\n\n%s\nagain: NOX_WALK_SEED=%d NOX_WALK_ROUNDS=%d go test -count=1 -tags machine -run 'Walk$' ./lab/walk",
		r.round, err, &story, seed, r.round)
}

// all walks the rounds, and home: to a machine that nothing is declared for.
func (r *run) all(rounds int, over func() bool) error {
	for r.round = 1; r.round <= rounds && !over(); r.round++ {
		if err := r.step(r.next); err != nil {
			return err
		}
		if r.round%50 == 0 {
			r.t.Logf("%d rounds", r.round)
		}
	}
	err := r.step(func(d declaration) declaration { return declaration{generation: d.generation + 1} })
	if err != nil {
		return err
	}
	did, err := r.cleanUp(r.now, true)
	for _, s := range did {
		r.say("%s", s)
	}
	if err != nil {
		return err
	}
	want := map[string][]look.Thing{}
	for p, t := range r.start {
		want[p] = []look.Thing{t}
	}
	return sentences(slices.Concat(look.Files(r.root, want, private...), look.Processes(r.root, nil)))
}

func sentences(list []string) error {
	if len(list) == 0 {
		return nil
	}
	return errors.New(strings.Join(list, "\n"))
}

// step is one round: a declaration comes into force, whatever happens.
func (r *run) step(next func(declaration) declaration) error {
	r.journal = append(r.journal, nil)
	drifted := map[string]bool{}
	if r.chance(0.3) {
		for range 1 + r.IntN(2) {
			before := maps.Clone(r.world.tree)
			did, err := r.drift(r.now)
			if err != nil {
				return fmt.Errorf("cannot make drift: %w", err)
			}
			if did != "" {
				r.drifts++
				r.say("%s", did)
			}
			for p := range r.world.owned {
				if before[p] != r.world.tree[p] {
					drifted[p] = true
				}
			}
		}
	}
	detour := len(drifted) == 0 && r.plain() && r.chance(0.25)
	var by, to declaration
	var refused map[string]bool
	var world world
	for tries := 0; ; tries++ {
		detour = detour && tries < 20
		by, to = r.now, next(r.now)
		if detour {
			by, to = to, next(to)
		}
		world = r.world.clone()
		refused = world.apply(to)
		if r.fair(by, to, refused, detour) {
			break
		}
	}
	before, err := look.From(r.root)
	if err != nil {
		return err
	}
	disturbed := false
	if detour {
		if err := r.cut(by, to); err != nil {
			return err
		}
		disturbed = true
	}
	for r.chance(0.55) {
		if err := r.cut(to, to); err != nil {
			return err
		}
		if r.chance(0.2) {
			what, err := r.disturb(to, refused)
			if err != nil {
				return fmt.Errorf("cannot make drift: %w", err)
			}
			if what != "" {
				r.drifts++
				disturbed = true
				r.say("%s", what)
			}
		}
	}
	r.world, r.refusals = world, r.refusals+len(refused)
	stable := r.stable(to, drifted, before)
	if disturbed {
		stable = nil
	}
	for name := range r.killed {
		i, j := r.now.named(name), to.named(name)
		if i < 0 || j < 0 || *r.now.resources[i].process != *to.resources[j].process {
			delete(r.killed, name)
		}
	}
	r.now = to
	if err := r.settle(refused, stable); err != nil {
		return err
	}
	did, err := r.cleanUp(r.now, false)
	for _, s := range did {
		r.say("%s", s)
	}
	return err
}

// plain reports whether the world is what was declared, and no more: then what
// a detour leaves is known.
func (r *run) plain() bool {
	for p, t := range r.world.tree {
		o, owned := r.world.owned[p]
		if owned && t != o.want || strings.HasPrefix(p, box+"/") && !owned {
			return false
		}
	}
	return len(r.world.owned) > 0
}

// fair reports whether the end of the round is known: nothing waits for what is
// refused, and nothing is refused for what a detour may have made or not.
func (r *run) fair(by, to declaration, refused map[string]bool, detour bool) bool {
	for id := range refused {
		if to.needed(id) {
			return false
		}
	}
	if !detour {
		return true
	}
	// Neither way, nor from one to the other.
	there := r.world.clone()
	if len(refused) > 0 || len(there.apply(by)) > 0 || len(there.apply(to)) > 0 {
		return false
	}
	for _, x := range to.resources {
		if x.process != nil {
			continue
		}
		// What was there before and comes to be declared as it is, is adopted
		// or not, as the instant of the kill will have it.
		o, owned := r.world.owned[x.path]
		for _, was := range []map[string]look.Thing{r.start, r.world.tree} {
			if t, ok := was[x.path]; ok && !owned && content(t) == content(x.thing) {
				return false
			}
		}
		if owned && o.before != nil && by.at(x.path) < 0 {
			return false
		}
	}
	return true
}

// stable are the processes that nobody has a reason to restart.
func (r *run) stable(to declaration, drifted map[string]bool, before []look.Running) map[string]look.Running {
	out := map[string]look.Running{}
	for _, x := range to.resources {
		if x.process == nil || x.process.once {
			continue
		}
		i := r.now.named(x.process.name)
		if i < 0 || *r.now.resources[i].process != *x.process {
			continue
		}
		if p := x.process.reads; p != "" {
			j := r.now.at(p)
			if j < 0 || drifted[p] || r.now.resources[j].thing != to.resources[to.at(p)].thing {
				continue
			}
		}
		for _, b := range before {
			if b.Shim() == "" && len(b.Args) > 1 && b.Args[1] == x.process.name {
				out[x.process.name] = b
			}
		}
	}
	return out
}

func (r *run) write(d declaration) (string, error) {
	file := filepath.Join(r.top, "declaration.json")
	b := d.document(r.beats)
	short := d.clone()
	for i := range short.resources {
		if t := &short.resources[i].thing; len(t.Text) > 60 {
			t.Text = fmt.Sprintf("%.30s… (%d bytes)", t.Text, len(t.Text))
		}
	}
	var flat bytes.Buffer
	if err := json.Compact(&flat, short.document(r.beats)); err != nil {
		return "", err
	}
	said := "declaration " + flat.String()
	if last := r.journal[len(r.journal)-1]; !slices.Contains(last, said) {
		r.say("%s", said)
	}
	return file, os.WriteFile(file, b, 0o600)
}
