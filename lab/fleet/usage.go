package fleet

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Usage is what a process has taken, by proc(5) and its own word.
type Usage struct {
	// RSS is what of its memory is in the machine's, Anon what of that is its own
	// and no file's, Peak the most RSS was; bytes.
	RSS, Anon, Peak int64
	// Heap is what was live after the last collection, and Stacks what its
	// goroutines' stacks took; both need GODEBUG=gctrace=1 in its Env.
	Heap, Stacks int64
	CPU          time.Duration
	Descriptors  int
}

// tick is a tick of proc_pid_stat(5), which is 1/100 s on every Linux of today.
const tick = 10 * time.Millisecond

// Usage is what the control plane takes now.
func (p *Plane) Usage() (u Usage, err error) {
	dir := fmt.Sprintf("/proc/%d/", p.PID())
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.RSS = n << 10
		case "RssAnon":
			u.Anon = n << 10
		case "VmHWM":
			u.Peak = n << 10
		}
	}
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return u, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, i := range []int{11, 12} { // utime, stime
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return u, err
		}
		u.CPU += time.Duration(n) * tick
	}
	fds, _ := os.ReadDir(dir + "fd") // root's alone: the program leaves no core
	u.Descriptors = len(fds)
	u.Heap, u.Stacks = p.collected()
	return u, nil
}

// collected reads the last line that the collector wrote:
//
//	gc 12 @1.2s 0%: … ms cpu, 40->41->20 MB, 42 MB goal, 3 MB stacks, 0 MB globals, 2 P
func (p *Plane) collected() (heap, stacks int64) {
	f, err := os.Open(p.Log())
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	const last = 1 << 20
	if fi, err := f.Stat(); err == nil && fi.Size() > last {
		_, _ = f.Seek(-last, 2)
	}
	b := make([]byte, last)
	n, _ := f.Read(b)
	for line := range strings.Lines(string(b[:n])) {
		if !strings.HasPrefix(line, "gc ") {
			continue
		}
		for _, part := range strings.Split(line, ", ") {
			switch {
			case strings.Contains(part, "->"):
				size := part[strings.LastIndex(part, ">")+1:]
				mib, _ := strconv.ParseInt(strings.TrimSuffix(size, " MB"), 10, 64)
				heap = mib << 20
			case strings.HasSuffix(part, " MB stacks"):
				mib, _ := strconv.ParseInt(strings.TrimSuffix(part, " MB stacks"), 10, 64)
				stacks = mib << 20
			}
		}
	}
	return heap, stacks
}
