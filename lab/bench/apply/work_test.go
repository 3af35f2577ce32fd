package apply

import (
	"bytes"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A work is a program that makes the tree below DIR/into and keeps it so.
type work struct {
	name, version string
	// first makes the files, again finds that they are there. Both are run in
	// DIR.
	first, again []string
	env          []string
	// durable: what it made lasts when it ends.
	durable bool
	// looks: it is to find and undo an edit.
	looks bool
}

// A sample is what one command took.
type sample struct{ wall, cpu, mib float64 }

func run(b *testing.B, dir string, env []string, argv ...string) sample {
	b.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	small(b)
	began := time.Now()
	err := c.Run()
	s := sample{wall: time.Since(began).Seconds()}
	if err != nil {
		b.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, tail(out.String()))
	}
	s.cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	s.mib = float64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
	return s
}

// small makes this process small: the kernel counts the peak of the one that
// starts a program as that of the program (exec_mmap in fs/exec.c).
func small(b *testing.B) {
	b.Helper()
	debug.FreeOSMemory()
	// 5: the peak counts anew (proc_pid_clear_refs(5)).
	must(b, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

func firstLine(b *testing.B, argv ...string) string {
	b.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	must(b, err)
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

func here(programs ...string) bool {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return false
		}
	}
	return true
}

// quiet lets nobody pay for what was done before.
func quiet() { syscall.Sync() }

func median(list []sample, of func(sample) float64) float64 {
	var v []float64
	for _, s := range list {
		v = append(v, of(s))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func wall(s sample) float64 { return s.wall }
func cpu(s sample) float64  { return s.cpu }
func mib(s sample) float64  { return s.mib }
