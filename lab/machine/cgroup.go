package machine

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hierarchies returns where cgroups are mounted, and which of these is
// version 2: alone, or beside version 1 ("hybrid").
func hierarchies() (all []string, v2 string, err error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		// proc_pid_mountinfo(5): … mount point … - type source options
		left, right, _ := strings.Cut(s.Text(), " - ")
		fields, kind := strings.Fields(left), strings.Fields(right)
		if len(fields) < 5 || len(kind) < 1 || (kind[0] != "cgroup" && kind[0] != "cgroup2") {
			continue
		}
		if slices.Contains(all, fields[4]) {
			continue
		}
		all = append(all, fields[4])
		if kind[0] == "cgroup2" && v2 == "" {
			v2 = fields[4]
		}
	}
	if v2 == "" {
		return nil, "", fmt.Errorf("no cgroup version 2 is mounted")
	}
	return all, v2, nil
}

// makeCgroups makes a cgroup for a machine in every hierarchy.
func makeCgroups(lab, machine string) ([]string, error) {
	all, _, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var groups []string
	for _, h := range all {
		g := filepath.Join(h, lab, machine)
		if err := os.MkdirAll(g, 0o755); err != nil {
			return nil, err
		}
		groups = append(groups, g)
		if _, err := os.Stat(filepath.Join(h, "cpuset.cpus")); err != nil {
			continue
		}
		// A new version 1 cpuset is empty, and nobody can join it, cpuset(7).
		for _, d := range []string{filepath.Join(h, lab), g} {
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				b, err := os.ReadFile(filepath.Join(h, file))
				if err == nil {
					err = tell(filepath.Join(d, file), string(b))
				}
				if err != nil {
					return nil, err
				}
			}
			if err := tell(filepath.Join(d, "cgroup.clone_children"), "1"); err != nil {
				return nil, err
			}
		}
	}
	return groups, nil
}

// tell writes to a file of the kernel's.
func tell(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// killCgroup kills every process of a machine.
func killCgroup(lab, machine string) error {
	_, v2, err := hierarchies()
	if err != nil {
		return err
	}
	return tell(filepath.Join(v2, lab, machine, "cgroup.kill"), "1")
}

// removeCgroups removes the cgroups of a machine, or of a whole lab when
// machine is "". A cgroup is busy for some milliseconds after its last process
// was killed, and the kernel tells nobody when that ends.
func removeCgroups(lab, machine string) error {
	all, _, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		top := filepath.Join(h, lab, machine)
		for try := range 500 {
			if try > 0 {
				time.Sleep(10 * time.Millisecond)
			}
			if err = removeTree(top); err == nil {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("cannot remove cgroup %q: %w", top, err)
		}
	}
	return nil
}

// removeTree removes a cgroup and those in it, the deepest first.
func removeTree(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, d := range slices.Backward(dirs) {
		if rerr := unix.Rmdir(d); rerr != nil && rerr != unix.ENOENT {
			err = rerr
		}
	}
	return err
}

// systemdPID returns the PID, as this process sees it, of a machine's PID 1.
func systemdPID(lab, machine string) (int, error) {
	_, v2, err := hierarchies()
	if err != nil {
		return 0, err
	}
	b, err := os.ReadFile(filepath.Join(v2, lab, machine, "payload/init.scope/cgroup.procs"))
	if err != nil {
		return 0, fmt.Errorf("machine %q is off", machine)
	}
	for _, field := range strings.Fields(string(b)) {
		status, err := os.ReadFile(filepath.Join("/proc", field, "status"))
		if err != nil {
			continue // it ended meanwhile
		}
		for line := range strings.Lines(string(status)) {
			// "NSpid: 4711 23 1": its PID in each namespace, the innermost last.
			if ns, ok := strings.CutPrefix(line, "NSpid:"); ok && strings.HasSuffix(strings.TrimSpace(ns), "\t1") {
				return strconv.Atoi(field)
			}
		}
	}
	return 0, fmt.Errorf("machine %q is going off", machine)
}
