//go:build machine

package powercut

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A host is the host's binary at a disk that is mounted here: the same program
// and the same disk as in the machine, after the same replay of the journal, so
// it finds what its own next start would find. Nothing of it knows of a boot.
type host struct {
	t            *testing.T
	binary, root string
}

// run returns what a command of the host prints.
func (h host) run(args ...string) []byte {
	h.t.Helper()
	cmd := exec.Command(h.binary, append([]string{"--root", h.root, "--json"}, args...)...)
	cmd.Env = []string{"PATH=/"}
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("mesh-host %s: %v\n%s\n%s", strings.Join(args, " "), err, log.String(), out)
	}
	return out
}

func (h host) ask(to any, args ...string) {
	h.t.Helper()
	out := h.run(args...)
	if err := json.Unmarshal(out, to); err != nil {
		h.t.Fatalf("mesh-host %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// A report is what the host says of a pass.
type report struct {
	Generation uint64
	Resources  []struct{ Key, Outcome, Error string }
}

// apply brings the disk to a generation.
func (h host) apply(generation uint64) report {
	h.t.Helper()
	file := h.root + ".json"
	if err := os.WriteFile(file, Document(Of(generation)), 0o600); err != nil {
		h.t.Fatal(err)
	}
	var r report
	h.ask(&r, "apply", file)
	return r
}

// recorded reports what the store says of a generation that was cut and is not
// so: a record is written after the thing worked, so what has one is there.
func (h host) recorded(generation uint64) {
	h.t.Helper()
	for _, o := range h.owned() {
		if o.Generation == generation && o.There != "as applied" {
			h.t.Errorf("the host recorded %q in generation %d, before it was there: it is %q", o.Key, generation, o.There)
		}
	}
}

// A record is what the host says of a thing that it owns.
type record struct {
	Key, There string
	Generation uint64
}

func (h host) owned() []record {
	h.t.Helper()
	var out []record
	h.ask(&out, "owned")
	return out
}

// agrees reports what the host's store says that is not so: of the tree that
// is on the disk, and of the generations that it said it was done with.
func (h host) agrees(tree Tree, done []uint64) {
	h.t.Helper()
	missing := maps.Clone(tree.Things)
	for _, o := range h.owned() {
		p := strings.TrimPrefix(o.Key, "file:")
		if _, ok := missing[p]; !ok {
			h.t.Errorf("the host owns %q, once more than it is declared", o.Key)
		}
		delete(missing, p)
		if o.There != "as applied" || o.Generation != tree.Generation {
			h.t.Errorf("the host says that %q of generation %d is %q", o.Key, o.Generation, o.There)
		}
	}
	for p := range missing {
		h.t.Errorf("the host does not own %q", p)
	}
	var history []report
	h.ask(&history, "history", "--limit", "0")
	if len(history) == 0 || history[0].Generation != tree.Generation {
		h.t.Errorf("the last of the %d reports is not of generation %d", len(history), tree.Generation)
	}
	for i, r := range history {
		if i > 0 && r.Generation > history[i-1].Generation {
			h.t.Errorf("the history has generation %d after %d", history[i-1].Generation, r.Generation)
		}
		for _, of := range r.Resources {
			if of.Error != "" {
				h.t.Errorf("in generation %d %s %s: %s", r.Generation, of.Key, of.Outcome, of.Error)
			}
		}
	}
	for _, n := range done {
		if !slices.ContainsFunc(history, func(r report) bool { return r.Generation == n }) {
			h.t.Errorf("generation %d was done, and is in no report", n)
		}
	}
	aside, err := filepath.Glob(filepath.Join(h.root, state, "host/store.db?*"))
	if err != nil || len(aside) > 0 {
		h.t.Errorf("beside the store: %v, %v", aside, err)
	}
}
