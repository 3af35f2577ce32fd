package apply

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/door"
)

// BenchmarkTenThousandPasses asks one `mesh-host run` for pass after pass over a
// hundred files, and prints what the process has by then. It is made once,
// whatever -benchtime says.
func BenchmarkTenThousandPasses(b *testing.B) {
	t, dir := tree{100, 4096}, b.TempDir()
	w := host(b, dir, t)
	into := fresh(b, dir, t)
	run(b, dir, nil, w.first...)
	before, store := t.seen(b, into), written(b, into)
	pid := served(b, w.first[0], into)
	ask := &door.Client{Path: filepath.Join(into, "run/nox-mesh/host.sock")}

	fmt.Printf("\n%s: passes over %d files in one process\n", w.version, t.files)
	fmt.Printf("%8s %8s %13s %9s %8s %15s\n", "passes", "RSS MiB", "heap, stacks", "open fds", "threads", "cpu ms a pass")
	done, last := 0, ticks(b, pid)
	for _, upTo := range []int{1, 100, 1000, 10000} {
		n := upTo - done
		for ; done < upTo; done++ {
			pass(b, ask, t)
		}
		now := ticks(b, pid)
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		must(b, err)
		fmt.Printf("%8d %8.1f %13.1f %9d %8.0f %15.2f\n", done, status(b, pid, "VmRSS")/1024, status(b, pid, "RssAnon")/1024, len(fds),
			status(b, pid, "Threads"), float64(now-last)/float64(n)*1000/userHZ)
		last = now
	}
	if !slices.Equal(before, t.seen(b, into)) || written(b, into) != store {
		b.Error("files or the store were written, though all was as declared")
	}
}

// served is a `mesh-host run` that says it runs, until the benchmark ends.
func served(b *testing.B, bin, root string) (pid int) {
	b.Helper()
	c := exec.Command(bin, "--root", root, "run")
	log, err := c.StderrPipe()
	must(b, err)
	must(b, c.Start())
	lines := bufio.NewScanner(log)
	for lines.Scan() && !strings.Contains(lines.Text(), "mesh-host runs") {
	}
	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, log); close(ended) }()
	b.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		<-ended
		if err := c.Wait(); err != nil {
			b.Errorf("mesh-host run: %v", err)
		}
	})
	return c.Process.Pid
}

// pass asks for one pass, in which all is as declared.
func pass(b *testing.B, ask *door.Client, t tree) {
	b.Helper()
	r, err := door.Verb[door.None, link.Report]{Name: "pass", Again: true}.Ask(b.Context(), ask, door.None{})
	must(b, err)
	for _, x := range r.Resources {
		if x.Outcome != "unchanged" {
			b.Fatalf("%s is %s", x.Key, x.Outcome)
		}
	}
	if len(r.Resources) != t.files {
		b.Fatalf("%d resources were looked at", len(r.Resources))
	}
}

// written tells one state of the store's file from another.
func written(b *testing.B, root string) string {
	b.Helper()
	fi, err := os.Stat(filepath.Join(root, "var/lib/nox-mesh/host/store.db"))
	must(b, err)
	return fmt.Sprint(fi.Size(), fi.ModTime())
}

// userHZ is the clock tick of /proc, the same on every machine that runs Linux
// for us (times(2)).
const userHZ = 100

// ticks is the time a process was on a processor, in ticks (proc_pid_stat(5)).
func ticks(b *testing.B, pid int) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+2:]))
	user, err := strconv.Atoi(fields[11])
	must(b, err)
	system, err := strconv.Atoi(fields[12])
	must(b, err)
	return user + system
}

// status is one number of /proc/PID/status.
func status(b *testing.B, pid int, name string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(b, err)
	_, rest, _ := strings.Cut(string(text), "\n"+name+":")
	v, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	must(b, err)
	return v
}
