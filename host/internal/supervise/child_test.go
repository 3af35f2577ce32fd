package supervise

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMain makes the test binary three programs: the tests, the shim
// ("shim …"), and, called by the name "child", the process that is supervised.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "child" {
		childMain(os.Args[1], os.Args[2:])
	}
	if len(os.Args) > 1 && os.Args[1] == "shim" {
		between = dieAt(os.Args[2:])
		// Not os.Exit: the race detector would sleep for a second first.
		syscall.Exit(Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// childMain does one thing and never returns. What it wants seen it puts into
// flags/ under the root, whole.
func childMain(mode string, args []string) {
	switch mode {
	case "exit": // exit CODE, counting the start
		count("starts")
		code, _ := strconv.Atoi(args[0])
		syscall.Exit(code)
	case "fail": // fail N: the first N times, then live
		n, _ := strconv.Atoi(args[0])
		if count("starts") <= n {
			syscall.Exit(1)
		}
	case "live":
		count("starts")
	case "polite": // polite NAME: says when it is told to end
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		raise(args[0]+"-up", strconv.Itoa(os.Getpid()))
		<-c
		raise(args[0]+"-told", "")
		syscall.Exit(0)
	case "stubborn": // ignores SIGTERM, and so do its children
		signal.Ignore(syscall.SIGTERM)
		again(false, "stubborn-child")
	case "stubborn-child":
		signal.Ignore(syscall.SIGTERM)
		raise("up", strconv.Itoa(os.Getpid()))
	case "worker": // a process with one worker in its session
		count("starts")
		again(false, "polite", "worker")
	case "daemon": // a daemon of the old kind: forks twice, in sessions of their own
		again(true, "daemon-middle", args[0])
		if args[0] == "stays" {
			break
		}
		syscall.Exit(1)
	case "daemon-middle":
		again(true, "polite", "daemon")
		syscall.Exit(0)
	case "flood": // flood MEBIBYTES, in lines of ten
		n, _ := strconv.Atoi(args[0])
		mib := strings.Repeat("x", 1<<20)
		for i := range n {
			io.WriteString(os.Stdout, mib)
			if i%10 == 9 {
				io.WriteString(os.Stderr, "\n")
			}
		}
		raise("flooded", "")
	case "tell": // what it was given
		wd, _ := os.Getwd()
		in, err := os.Readlink("/proc/self/fd/0")
		fds, _ := os.ReadDir("/proc/self/fd")
		sid, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
		raise("told", fmt.Sprintf("env %q\nargs %q\ndir %s\nstdin %s %v\nfds %d\nleader %v\n",
			os.Environ(), os.Args, wd, in, err, inherited(fds), int(sid) == os.Getpid()))
	}
	c := make(chan os.Signal, 1) // a bare select would be a deadlock
	signal.Notify(c, syscall.SIGUSR2)
	<-c
}

// inherited counts the descriptors that are not the Go runtime's own: an epoll,
// an eventfd, the limits of the cgroup, and the directory that is being read.
func inherited(fds []os.DirEntry) int {
	n := 0
	for _, fd := range fds {
		target, _ := os.Readlink("/proc/self/fd/" + fd.Name())
		own := strings.HasPrefix(target, "anon_inode:") || strings.HasPrefix(target, "/proc/") || strings.HasPrefix(target, "/sys/fs/cgroup/")
		if !own && target != "" {
			n++
		}
	}
	return n
}

func again(session bool, args ...string) {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "child"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// raise makes a file whole.
func raise(name, content string) {
	dir := filepath.Join(os.Getenv("NOX_ROOT"), "flags")
	temp := filepath.Join(dir, fmt.Sprintf(".%s.%d", name, os.Getpid()))
	if err := os.WriteFile(temp, []byte(content), 0o644); err != nil {
		panic(err)
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		panic(err)
	}
}

// count adds a line to a file and returns how many it has.
func count(name string) int {
	f, err := os.OpenFile(filepath.Join(os.Getenv("NOX_ROOT"), name), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, os.Getpid())
	f.Seek(0, io.SeekStart)
	b, _ := io.ReadAll(f)
	return strings.Count(string(b), "\n")
}
