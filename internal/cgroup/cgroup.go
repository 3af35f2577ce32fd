// Package cgroup reads what the control groups of this process allow it, version
// 1 or 2, as cgroups(7) has it. It changes nothing, and what it cannot read is no
// limit: a container may show only a part of the tree.
package cgroup

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Memory is how much memory this process may have together with all that is in
// its groups, in bytes, and whether there is such a limit.
func Memory() (limit int64, ok bool) { return memory("/") }

// memory is Memory of the machine whose files are below root.
func memory(root string) (limit int64, ok bool) {
	limit = math.MaxInt64
	for _, h := range hierarchies(root) {
		// The limits of the groups above hold as well.
		for dir := h.group; ; dir = filepath.Dir(dir) {
			b, err := os.ReadFile(filepath.Join(root, h.mount, dir, h.file))
			if n, perr := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && perr == nil && n > 0 {
				limit = min(limit, n)
			}
			if dir == "/" {
				break
			}
		}
	}
	// Version 1 says "no limit" as the largest number of whole pages.
	return limit, limit < math.MaxInt64>>1
}

// A hierarchy is where a tree of groups is mounted, this process's group in it,
// and the file that has its limit.
type hierarchy struct{ mount, group, file string }

func hierarchies(root string) (out []hierarchy) {
	v1, v2 := groups(root)
	f, err := os.Open(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return nil
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		// proc_pid_mountinfo(5): id parent device root mount-point … - type source options
		left, right, _ := strings.Cut(s.Text(), " - ")
		at, what := strings.Fields(left), strings.Fields(right)
		if len(at) < 5 || len(what) < 3 {
			continue
		}
		h := hierarchy{mount: at[4]}
		switch {
		case what[0] == "cgroup2" && v2 != "":
			h.group, h.file = v2, "memory.max"
		case what[0] == "cgroup" && v1 != "" && slices.Contains(strings.Split(what[2], ","), "memory"):
			h.group, h.file = v1, "memory.limit_in_bytes"
		default:
			continue
		}
		// A container may have its own group mounted, and not the tree it is in.
		if below, found := strings.CutPrefix(h.group, strings.TrimSuffix(at[3], "/")); found {
			h.group = filepath.Join("/", below)
		} else {
			h.group = "/"
		}
		out = append(out, h)
	}
	return out
}

// groups are this process's group with the memory controller of version 1, and
// the one of version 2.
func groups(root string) (v1, v2 string) {
	b, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(b)) {
		// cgroups(7): id:controllers:path
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(f) != 3:
		case f[0] == "0":
			v2 = f[2]
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			v1 = f[2]
		}
	}
	return v1, v2
}
