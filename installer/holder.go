package installer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/nox-mesh/nox-mesh/internal/layout"
	"golang.org/x/sys/unix"
)

// runningHost reports whether a host runs: it holds the lock of its store, which
// no stale file can fake. pid is its process, 0 when that cannot be told.
func runningHost(l layout.Layout) (pid int, runs bool, err error) {
	store, err := os.Open(l.HostStore())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer store.Close()
	if unix.Flock(int(store.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		return 0, false, nil
	}
	return holder(store), true, nil
}

// howToStop says how to end the host that holds the lock of the store. The
// service manager was asked before; what runs still was started by somebody else.
func howToStop(pid int) string {
	if pid == 0 {
		return "stop it first: systemctl stop " + layout.HostUnit + ", or end the \"mesh-host run\" that somebody started"
	}
	if ofUnit(pid) {
		return "stop it first: systemctl stop " + layout.HostUnit
	}
	return fmt.Sprintf("stop it first: kill %d", pid)
}

// holder returns the process that holds the flock(2) of f, 0 when it cannot be
// told: /proc/locks, proc_locks(5), names it by device and inode, and a process
// of another PID namespace by none.
func holder(f *os.File) int {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	want := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range bytes.Lines(locks) {
		// "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"
		w := bytes.Fields(line)
		if len(w) < 6 || string(w[1]) != "FLOCK" || string(w[5]) != want {
			continue
		}
		if pid, err := strconv.Atoi(string(w[4])); err == nil && pid > 1 {
			return pid
		}
	}
	return 0
}

// ofUnit reports whether a process belongs to the host's service: killed, it
// would be started again.
func ofUnit(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && bytes.Contains(b, []byte("/"+layout.HostUnit+"\n"))
}
