package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxMounts bounds /proc/self/mountinfo, in bytes: a machine that runs
// containers has thousands of mounts.
const maxMounts = 16 << 20

// A mount is a line of proc_pid_mountinfo(5).
type mount struct {
	id         uint64
	point, typ string
	readOnly   bool
}

// fileSystems are those that the host and what it applies live on.
func (s source) fileSystems() ([]FileSystem, error) {
	b, err := readUpTo(s.kernel.Path("/proc/self/mountinfo"), maxMounts)
	if err != nil {
		return nil, err
	}
	mounts := parseMounts(b)
	if len(mounts) == 0 {
		return nil, nil // no /proc
	}
	var out []FileSystem
	at := map[uint64]int{}
	for _, path := range []string{"/", "/usr", "/var", s.state()} {
		real, err := nearest(s.files.Path(path))
		if err != nil {
			return out, err
		}
		m := s.mountOf(real, mounts)
		if m == nil {
			return out, fmt.Errorf("no mount is known that %q is on", real)
		}
		if i, ok := at[m.id]; ok {
			out[i].Holds = append(out[i].Holds, path)
			continue
		}
		var st unix.Statfs_t
		if err := s.statfs(real, &st); err != nil {
			return out, &fs.PathError{Op: "statfs", Path: real, Err: err}
		}
		at[m.id] = len(out)
		out = append(out, FileSystem{
			Mount: line(m.point), Holds: []string{path}, Type: clean(m.typ), ReadOnly: m.readOnly,
			Bytes: int64(min(st.Blocks, 1<<62/uint64(max(st.Frsize, 1)))) * max(st.Frsize, 1),
		})
	}
	return out, nil
}

// state is where the host's state is, as a path of its machine.
func (s source) state() string { return strings.TrimPrefix(s.files.State(), s.files.Root) }

// nearest is path without symlinks, or that of it which is there.
func nearest(path string) (string, error) {
	for {
		real, err := filepath.EvalSymlinks(path)
		if !errors.Is(err, fs.ErrNotExist) || path == "/" {
			return real, err
		}
		path = filepath.Dir(path)
	}
}

// mountOf is the mount that path is on: the kernel says which (statx(2), Linux
// 5.8), else it is the last of those with the longest name that leads to it.
func (s source) mountOf(path string, mounts []mount) *mount {
	var st unix.Statx_t
	if s.kernel.IsMachine() && unix.Statx(unix.AT_FDCWD, path, unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st) == nil &&
		st.Mask&unix.STATX_MNT_ID != 0 {
		for i := range mounts {
			if mounts[i].id == st.Mnt_id {
				return &mounts[i]
			}
		}
	}
	path = "/" + strings.TrimPrefix(strings.TrimPrefix(path, s.kernel.Root), "/")
	var best *mount
	for i, m := range mounts {
		leads := path == m.point || strings.HasPrefix(path, strings.TrimSuffix(m.point, "/")+"/")
		if leads && (best == nil || len(m.point) >= len(best.point)) {
			best = &mounts[i]
		}
	}
	return best
}

func parseMounts(b []byte) []mount {
	var out []mount
	for line := range bytes.Lines(b) {
		left, right, ok := strings.Cut(strings.TrimSpace(string(line)), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 2 {
			continue
		}
		id, err := strconv.ParseUint(l[0], 10, 64)
		if err != nil {
			continue
		}
		super := ""
		if len(r) > 2 {
			super = r[2]
		}
		out = append(out, mount{id: id, point: unescape(l[4]), typ: r[0], readOnly: hasOption(l[5], "ro") || hasOption(super, "ro")})
	}
	return out
}

func hasOption(list, option string) bool { return slices.Contains(strings.Split(list, ","), option) }

// unescape undoes what the kernel does to a name that is one of several on a
// line: "\040" for a space.
func unescape(s string) string {
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out = append(out, byte(n))
				i += 3
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}
