package supervise

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// stray returns a handle on a shim that lives over dir although nobody finds
// its lock there: somebody deleted or moved the file, or the whole folder. It
// is found through /proc, by how it was started, and is one only if it holds a
// lock through one of its descriptors: a command line can say anything. known
// is the file that is in the lock's place, or nil: it was asked already, and
// to open and close it would cost the caller his own lock on it.
func stray(dir string, known os.FileInfo) (*Handle, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() || !shimOver(pid, dir) {
			continue
		}
		// Whatever cannot be read has ended meanwhile.
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		for _, fd := range fds {
			path := fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name())
			target, _ := os.Readlink(path)
			if strings.TrimSuffix(filepath.Base(target), " (deleted)") != LockFile {
				continue
			}
			fi, err := os.Stat(path)
			if err != nil || !fi.Mode().IsRegular() || known != nil && os.SameFile(fi, known) {
				continue
			}
			if st, ok := fi.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
				continue
			}
			// An error is about this candidate: it ends the search for none.
			h, _ := holds(path)
			if h != nil && h.PID == pid {
				return h, nil
			}
			if h != nil {
				h.Close()
			}
		}
	}
	return nil, nil
}

// shimOver reports whether the process is one of ours that was started as the
// shim over dir. A command line can say anything, and a setuid program runs as
// us at somebody else's call: so all four of its user ids must be ours, and what
// it executes must be the launcher, whose folder is ours alone, or what we are.
func shimOver(pid int, dir string) bool {
	if !oursAlone(pid) || !launched(pid, dir) {
		return false
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 16<<10))
	if err != nil {
		return false
	}
	argv := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	if len(argv) < 3 || argv[1] != "shim" {
		return false
	}
	a, err := parseArguments(argv[2:])
	return err == nil && !a.detach && Folder(a.root, a.name) == dir
}

// oursAlone: real, effective, saved and file system user id are ours
// (proc_pid_status(5)).
func oursAlone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	own := strconv.Itoa(os.Geteuid())
	for line := range strings.Lines(string(b)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			f := strings.Fields(ids)
			return len(f) == 4 && f[0] == own && f[1] == own && f[2] == own && f[3] == own
		}
	}
	return false
}

// launched: it executes the launcher of dir's machine, also one that was
// replaced since, or the same file as this process.
func launched(pid int, dir string) bool {
	exe := fmt.Sprintf("/proc/%d/exe", pid)
	target, err := os.Readlink(exe)
	if err != nil {
		return false
	}
	// The kernel's name of what is executed has no symlinks.
	folder, err := filepath.EvalSymlinks(filepath.Join(dir, "..", "..", "launcher"))
	if err == nil && strings.TrimSuffix(target, " (deleted)") == filepath.Join(folder, "mesh-host") {
		return true
	}
	theirs, err := os.Stat(exe)
	if err != nil {
		return false
	}
	own, err := os.Stat("/proc/self/exe")
	return err == nil && os.SameFile(theirs, own)
}
