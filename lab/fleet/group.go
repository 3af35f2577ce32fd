package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A group is a control group with limits, in every hierarchy that has them.
type group struct{ dirs []string }

// newGroup makes one with so much memory and two processors, or says why that
// cannot be had here.
func newGroup(memory int64) (*group, error) {
	g := &group{}
	name := fmt.Sprintf("nox-fleet-%d", os.Getpid())
	var set map[string]string
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		// Version 2: the limits are in one place.
		set = map[string]string{"memory.max": strconv.FormatInt(memory, 10), "memory.swap.max": "0", "cpu.max": "200000 100000"}
		g.dirs = []string{filepath.Join("/sys/fs/cgroup", name)}
	} else {
		set = map[string]string{"memory/memory.limit_in_bytes": strconv.FormatInt(memory, 10), "cpu/cpu.cfs_quota_us": "200000"}
		g.dirs = []string{filepath.Join("/sys/fs/cgroup/memory", name), filepath.Join("/sys/fs/cgroup/cpu", name)}
	}
	for _, d := range g.dirs {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	for file, value := range set {
		dir := g.dirs[0]
		if len(g.dirs) > 1 {
			dir = filepath.Join("/sys/fs/cgroup", filepath.Dir(file), name)
		}
		f, err := os.OpenFile(filepath.Join(dir, filepath.Base(file)), os.O_WRONLY, 0)
		if errors.Is(err, os.ErrNotExist) && file == "memory.swap.max" {
			continue // no swap accounting
		}
		if err == nil {
			_, err = f.WriteString(value)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return nil, errors.Join(err, g.remove())
		}
	}
	return g, nil
}

// enter is a command line that runs another in the group.
func (g *group) enter(command ...string) []string {
	if g == nil {
		return command
	}
	script, args := "", []string{}
	for i, d := range g.dirs {
		script += fmt.Sprintf(`echo $$ >"$%d"/cgroup.procs; `, i+1)
		args = append(args, d)
	}
	script += fmt.Sprintf(`shift %d; exec "$@"`, len(g.dirs))
	return append(append([]string{"sh", "-euc", script, "sh"}, args...), command...)
}

// remove takes the group away. It is busy for some milliseconds after its last
// process ended, and the kernel tells nobody when that is over.
func (g *group) remove() error {
	if g == nil {
		return nil
	}
	var err error
	for _, d := range g.dirs {
		for range 500 {
			if err = unix.Rmdir(d); err == nil || err == unix.ENOENT {
				err = nil
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return err
}

// CanLimit says whether a control plane can be limited here: that needs root, and
// control groups that may be written.
func CanLimit() bool {
	g, err := newGroup(1 << 30)
	return err == nil && g.remove() == nil
}
