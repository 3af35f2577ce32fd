//go:build machine

package walk

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/walk/look"
)

// settle applies what is to be in force, to its end, and looks at all there is.
func (r *run) settle(refused map[string]bool, stable map[string]look.Running) error {
	file, err := r.write(r.now)
	if err != nil {
		return err
	}
	want := r.now.processes(r.root, r.beats)
	// A process that was killed is failing until its shim has started it again.
	err = r.until(20*time.Second, func() error {
		var rep report
		code, said, err := r.call(&rep, "apply", "--json", file)
		if err != nil {
			return err
		}
		r.say("apply %d: exit %d", r.now.generation, code)
		return r.told(rep, code, said, refused)
	})
	if err != nil {
		return err
	}
	if err := sentences(look.Files(r.root, r.world.files(), private...)); err != nil {
		return fmt.Errorf("after the apply: %w", err)
	}
	if err := r.until(10*time.Second, func() error { return r.alive(want) }); err != nil {
		return fmt.Errorf("after the apply: %w", err)
	}
	for _, p := range r.running() {
		was, ok := stable[p.Args[1]]
		if ok && r.alone() && was.PID != p.PID {
			return fmt.Errorf("process %s was restarted for nothing: it is %v, was %v", p.Args[1], p, was)
		}
	}
	// Its shim may hear of the end of one that was killed only now.
	if err := r.until(20*time.Second, func() error { return r.ownedIs(refused) }); err != nil {
		return err
	}
	if err := r.again(file, refused); err != nil {
		return fmt.Errorf("the second apply: %w", err)
	}
	return nil
}

// alone reports whether nobody but the host had a hand in processes this round.
func (r *run) alone() bool {
	for _, line := range r.journal[len(r.journal)-1] {
		if strings.HasPrefix(line, "killed ") {
			return false
		}
	}
	return true
}

func (r *run) running() []look.Running {
	all, _ := look.From(r.root)
	return slices.DeleteFunc(all, func(p look.Running) bool { return p.Shim() != "" || len(p.Args) < 2 })
}

// told checks what an apply says.
func (r *run) told(rep report, code int, said string, refused map[string]bool) error {
	good := []string{"applied", "unchanged", "adopted", "repaired", "removed", "released"}
	saw := map[string]bool{}
	for _, x := range rep.Resources {
		saw[x.ID] = true
		if is := slices.Contains(good, x.Outcome); is == refused[x.ID] {
			return fmt.Errorf("%s is %s: %s%s", x.Key, x.Outcome, x.Note, x.Error)
		}
	}
	for _, x := range r.now.resources {
		if !saw[x.id] {
			return fmt.Errorf("exit %d, and nothing about %s\n%s", code, x.id, said)
		}
	}
	if want := map[bool]int{true: 4}[len(refused) > 0]; code != want {
		return fmt.Errorf("exit %d, want %d\n%s", code, want, said)
	}
	return nil
}

// alive checks processes, and what they say of themselves.
func (r *run) alive(want map[string]look.Process) error {
	out := look.Processes(r.root, want)
	twice, err := filepath.Glob(r.beats + "/*.twice")
	if err != nil {
		return err
	}
	for _, f := range twice {
		b, _ := os.ReadFile(f)
		out = append(out, fmt.Sprintf("%s was started a second time beside the first: %s", filepath.Base(f), b))
	}
	for _, x := range r.now.resources {
		if x.process == nil {
			continue
		}
		shall := strings.Join(x.process.arguments()[1:], " ") + "\n"
		if p := x.process.reads; p != "" {
			shall += r.world.tree[p].Text + "<nil>\n"
		} else {
			shall += fmt.Sprintf("open %s/nothing: no such file or directory\n", r.root)
		}
		saw, err := os.ReadFile(filepath.Join(r.beats, x.process.name+".saw"))
		if x.process.uid != 0 && err == nil { // it may not read the file
			args, _, _ := strings.Cut(string(saw), "\n")
			saw = []byte(args + "\n")
			shall, _, _ = strings.Cut(shall, "\n")
			shall += "\n"
		}
		if err != nil || string(saw) != shall {
			out = append(out, fmt.Sprintf("process %s saw %.200q (%v), want %.200q", x.process.name, saw, err, shall))
		}
	}
	// The folders of processes are the host's own, but no more than there are.
	entries, err := os.ReadDir(r.root + "/var/lib/nox-mesh/process")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if _, ok := want[e.Name()]; !ok {
			out = append(out, fmt.Sprintf("%q is left over in the host's folder of processes", e.Name()))
		}
	}
	return sentences(out)
}

// ownedIs checks what the host says it owns.
func (r *run) ownedIs(refused map[string]bool) error {
	var list []struct{ Key, ID, There string }
	code, said, err := r.call(&list, "owned", "--json")
	if err != nil || code != 0 {
		return fmt.Errorf("mesh-host owned: exit %d: %s (%w)", code, said, err)
	}
	want, have := map[string]string{}, map[string]string{}
	for p, o := range r.world.owned {
		want["file:"+p] = o.id
	}
	for _, x := range r.now.resources {
		if x.process != nil {
			want["process:"+x.process.name] = x.id
		}
	}
	for _, o := range list {
		have[o.Key] = o.ID
		if p, ok := strings.CutPrefix(o.Key, "file:"); ok && r.now.at(p) >= 0 && refused[r.now.resources[r.now.at(p)].id] {
			continue
		}
		if o.There != "as applied" {
			return fmt.Errorf("mesh-host owned says of %s: %s", o.Key, o.There)
		}
	}
	if !maps.Equal(want, have) {
		return fmt.Errorf("mesh-host owned says %v, want %v", have, want)
	}
	return nil
}

// again applies what is in force once more: nothing is touched.
func (r *run) again(file string, refused map[string]bool) error {
	stamps := func() (map[string]look.Stamp, error) {
		all, err := look.Stamps(r.root, private...)
		if err != nil || len(refused) > 0 {
			return all, err // what is refused is tried again, which is recorded
		}
		kept, err := look.Stamps(r.root+"/var/lib/nox-mesh", "/content", "/process")
		for p, s := range kept {
			all["(state)"+p] = s
		}
		return all, err
	}
	was, err := stamps()
	if err != nil {
		return err
	}
	processes := r.running()
	begin := time.Now()
	var rep report
	code, said, err := r.call(&rep, "apply", "--json", file)
	if err != nil {
		return err
	}
	r.quiet = (3*r.quiet + time.Since(begin)) / 4
	if err := r.told(rep, code, said, refused); err != nil {
		return err
	}
	is, err := stamps()
	if err != nil {
		return err
	}
	// What one reads of a directory touches nothing that is stamped.
	out := look.Touched(was, is)
	now := r.running()
	for _, p := range processes {
		if !slices.ContainsFunc(now, func(q look.Running) bool { return p.PID == q.PID && p.Start == q.Start }) {
			out = append(out, fmt.Sprintf("%v was restarted", p))
		}
	}
	return sentences(out)
}
