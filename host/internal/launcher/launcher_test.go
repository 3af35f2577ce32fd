package launcher

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// TestMain makes the test binary a launcher ("launch") and a host ("run").
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "launch":
			os.Exit(Main(os.Args[2:]))
		case "run":
			fmt.Printf("host %d %s %s\n", os.Getpid(), strings.Join(os.Args[1:], " "), os.Getenv("NOTIFY_SOCKET"))
			os.Exit(3)
		}
	}
	os.Exit(m.Run())
}

func launch(t *testing.T, args ...string) (pid int, out string, code int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"launch"}, args...)...)
	cmd.Env = []string{"NOTIFY_SOCKET=@x"}
	b, _ := cmd.CombinedOutput()
	return cmd.Process.Pid, string(b), cmd.ProcessState.ExitCode()
}

func TestLauncherBecomesTheHost(t *testing.T) {
	pid, out, code := launch(t, os.Args[0])
	if want := fmt.Sprintf("host %d run @x\n", pid); out != want || code != 3 {
		t.Errorf("printed %q, exit %d; want %q, exit 3", out, code, want)
	}
}

func TestABinaryThatCannotBeExecutedIsSaidAndTheCopyServes(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for binary, cause := range map[string]string{
		filepath.Join(dir, "missing"): "no such file or directory",
		text:                          "exec format error",
		dir:                           "permission denied",
	} {
		pid, out, code := launch(t, binary)
		if code != 3 || !strings.Contains(out, cause) || !strings.Contains(out, binary) || !strings.Contains(out, fmt.Sprintf("host %d run @x\n", pid)) {
			t.Errorf("printed %q, exit %d; want %q, and the host from the launcher's copy", out, code, cause)
		}
	}
}

func TestTheUnitKnowsTheLaunchersLastWord(t *testing.T) {
	want := fmt.Sprintf("RestartPreventExitStatus=%d\n", ExitCannotStart)
	if unit := string(pkgbuild.HostUnit("/usr/bin/mesh-host")); !strings.Contains(unit, want) {
		t.Errorf("the unit has no %q:\n%s", want, unit)
	}
}

func TestReloadSignalsTheProcess(t *testing.T) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGHUP)
	defer signal.Stop(got)
	if code := Reload([]string{fmt.Sprint(os.Getpid())}); code != 0 {
		t.Fatalf("exit %d", code)
	}
	<-got
	for _, bad := range [][]string{nil, {"x"}, {"0"}, {"-1"}, {"1"}} {
		if code := Reload(bad); code != 2 {
			t.Errorf("reload %v: exit %d, want 2", bad, code)
		}
	}
}

func TestWrongUsageIsNoFailedStart(t *testing.T) {
	if _, _, code := launch(t); code != 2 {
		t.Errorf("exit %d, want 2", code)
	}
}
