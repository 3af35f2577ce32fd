package look

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A Running is one process that runs from a root: its executable lies there,
// or its environment says so.
type Running struct {
	PID, Parent int
	// Start is in clock ticks after boot: with the PID it is one process's for
	// as long as this boot lasts (proc_pid_stat(5)).
	Start    uint64
	Exe      string
	Args     []string
	Env      []string
	UID, GID uint32
}

// Shim returns the name of the process that it is the shim of, or "".
func (r Running) Shim() string {
	if len(r.Args) > 2 && r.Args[1] == "shim" && filepath.Base(r.Exe) == "mesh-host" {
		return r.Args[len(r.Args)-1]
	}
	return ""
}

func (r Running) String() string { return fmt.Sprintf("%d (child of %d) %q", r.PID, r.Parent, r.Args) }

// From are the processes that run from root, in no order, without this one.
// A zombie is one only when what it was a child of is.
func From(root string) ([]Running, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found, zombies []Running
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		r, state, ok := read(pid)
		switch {
		case !ok:
		case state == "Z":
			zombies = append(zombies, r)
		case strings.HasPrefix(r.Exe, root+"/") || slices.Contains(r.Env, "NOX_ROOT="+root) || r.Shim() != "" && slices.Contains(r.Args, root):
			found = append(found, r)
		}
	}
	for _, z := range zombies {
		if slices.ContainsFunc(found, func(r Running) bool { return r.PID == z.Parent }) {
			z.Args = []string{"a zombie"}
			found = append(found, z)
		}
	}
	return found, nil
}

func read(pid int) (r Running, state string, ok bool) {
	dir := fmt.Sprintf("/proc/%d", pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return r, "", false
	}
	// The name is in parentheses and may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return r, "", false
	}
	r.PID = pid
	r.Parent, _ = strconv.Atoi(fields[1])
	r.Start, _ = strconv.ParseUint(fields[19], 10, 64)
	exe, _ := os.Readlink(dir + "/exe")
	r.Exe = strings.TrimSuffix(exe, " (deleted)")
	r.Args, r.Env = list(dir+"/cmdline"), list(dir+"/environ")
	if fi, err := os.Stat(dir); err == nil {
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			r.UID, r.GID = st.Uid, st.Gid
		}
	}
	return r, fields[0], true
}

func list(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// A Process is one that shall run, by its name.
type Process struct {
	Exe      string // where it lies on this computer
	Args     []string
	Env      []string // all of it
	UID, GID uint32
	// Over: it runs to its end, and did. Its shim may be there or not.
	Over bool
}

// Processes says how what runs from root differs from want: each once, under a
// shim of its own, and nothing else.
func Processes(root string, want map[string]Process) []string {
	all, err := From(root)
	if err != nil {
		return []string{fmt.Sprintf("cannot look: %v", err)}
	}
	var out []string
	shims, under := map[string][]Running{}, map[int][]Running{}
	for _, r := range all {
		if name := r.Shim(); name != "" {
			shims[name] = append(shims[name], r)
		} else {
			under[r.Parent] = append(under[r.Parent], r)
		}
	}
	for _, name := range sorted(want, shims) {
		p, wanted := want[name]
		switch n := len(shims[name]); {
		case !wanted:
			out = append(out, fmt.Sprintf("process %s is not declared and has the shims %v", name, shims[name]))
			continue
		case n > 1, n == 0 && !p.Over:
			out = append(out, fmt.Sprintf("process %s has %d shims: %v", name, n, shims[name]))
		}
		var children []Running
		for _, s := range shims[name] {
			mark := fmt.Sprintf("NOX_SHIM=%d-%d", s.PID, s.Start) // whose it is; another's is not
			for _, c := range under[s.PID] {
				c.Env = slices.DeleteFunc(c.Env, func(e string) bool { return e == mark })
				children = append(children, c)
			}
			delete(under, s.PID)
		}
		out = append(out, p.differences(name, children)...)
	}
	for _, orphans := range under {
		out = append(out, fmt.Sprintf("%v is under no shim", orphans))
	}
	slices.Sort(out)
	return out
}

func (p Process) differences(name string, have []Running) []string {
	want := 1
	if p.Over {
		want = 0
	}
	if len(have) != want {
		return []string{fmt.Sprintf("process %s runs %d times, want %d: %v", name, len(have), want, have)}
	}
	var out []string
	for _, r := range have {
		add := func(what string, is, shall any) {
			out = append(out, fmt.Sprintf("process %s has the %s %q, want %q", name, what, is, shall))
		}
		if r.Exe != p.Exe {
			add("executable", r.Exe, p.Exe)
		}
		if !slices.Equal(r.Args, p.Args) {
			add("arguments", r.Args, p.Args)
		}
		slices.Sort(r.Env)
		if env := slices.Sorted(slices.Values(p.Env)); !slices.Equal(r.Env, env) {
			add("environment", r.Env, env)
		}
		if r.UID != p.UID || r.GID != p.GID {
			add("user", fmt.Sprint(r.UID, ":", r.GID), fmt.Sprint(p.UID, ":", p.GID))
		}
	}
	return out
}

// Signal sends a signal to that process, if it is still that one.
func (r Running) Signal(sig syscall.Signal) error {
	p, err := os.FindProcess(r.PID) // with a pidfd: pidfd_open(2)
	if err != nil {
		return nil
	}
	defer p.Release()
	if now, _, ok := read(r.PID); !ok || now.Start != r.Start {
		return nil
	}
	if err := p.Signal(sig); err != nil && err != os.ErrProcessDone {
		return err
	}
	return nil
}
