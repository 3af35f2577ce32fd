package secret

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain is also the program that has a secret, and one that it runs.
func TestMain(m *testing.M) {
	switch os.Getenv("SECRET_TEST_PROGRAM") {
	case "":
		os.Exit(m.Run())
	case "keeps":
		KeepMemory()
		dumpable()
		_, err := os.ReadDir("/proc/self/fd")
		fmt.Println("its own descriptors:", err)
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{"SECRET_TEST_PROGRAM=child"}
		cmd.Stdout = os.Stdout
		fmt.Println(cmd.Run())
	case "child":
		dumpable()
		var l unix.Rlimit
		err := unix.Getrlimit(unix.RLIMIT_CORE, &l)
		fmt.Println("limit:", l.Cur > 1<<40, err)
	case "crashes", "keeps and crashes", "has none and crashes":
		switch how, _, _ := strings.Cut(os.Getenv("SECRET_TEST_PROGRAM"), " "); how {
		case "keeps":
			KeepMemory()
		case "has":
			NoCore()
		}
		fmt.Println("runs")
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
	os.Exit(0)
}

func dumpable() {
	is, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	fmt.Println("dumpable:", is, err)
}

// program is this test as a program that may dump as much as it likes.
func program(t *testing.T, as string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `ulimit -c unlimited; exec "$0"`, os.Args[0])
	cmd.Env = []string{"SECRET_TEST_PROGRAM=" + as, "GOTRACEBACK=crash"}
	cmd.Dir = t.TempDir() // where a core would be
	return cmd
}

func mayDump(t *testing.T) {
	t.Helper()
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil || l.Max != unix.RLIM_INFINITY {
		t.Skipf("the hard limit of cores is %d here: %v", l.Max, err)
	}
}

func TestTheMemoryIsKeptAndThatOfChildrenIsNot(t *testing.T) {
	mayDump(t)
	out, err := program(t, "keeps").CombinedOutput()
	const want = "dumpable: 0 <nil>\nits own descriptors: <nil>\ndumpable: 1 <nil>\nlimit: true <nil>\n<nil>\n"
	if err != nil || string(out) != want {
		t.Errorf("%v:\n%swant\n%s", err, out, want)
	}
}

// TestACrashLeavesNoCore kills with SIGQUIT a program that Go has dump its core.
func TestACrashLeavesNoCore(t *testing.T) {
	mayDump(t)
	dumps := func(as string) bool {
		cmd := program(t, as)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 5)
		if _, err := out.Read(said); err != nil || string(said) != "runs\n" {
			t.Errorf("%q, %v", said, err)
		}
		if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
		how := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !how.Signaled() {
			t.Errorf("%s: it was not killed: %v", as, cmd.ProcessState)
		}
		return how.CoreDump()
	}
	if dumps("keeps and crashes") {
		t.Error("its core was dumped")
	}
	if pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern"); err == nil && pattern[0] != '|' && dumps("has none and crashes") {
		t.Error("a core file was written")
	}
	if !dumps("crashes") {
		t.Skip("no program leaves a core here: that this one does not shows nothing")
	}
}
