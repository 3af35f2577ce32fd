package command

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// TestMain is also the program itself, where its signals matter.
func TestMain(m *testing.M) {
	if os.Getenv("COMMAND_TEST_PROGRAM") == "1" {
		os.Exit(cli.Main("mesh-host", Run))
	}
	if len(os.Args) > 1 && os.Args[1] == "shim" { // the launcher's copy runs it
		os.Exit(supervise.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// aService starts one, and ends it when it takes too long.
func aService(t *testing.T, root string) (cmd *exec.Cmd, log io.ReadCloser) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], "run", "--root", root)
	cmd.Env = append(os.Environ(), "COMMAND_TEST_PROGRAM=1")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { stuck.Stop() })
	return cmd, log
}

// TestAHangupEndsNoService: SIGHUP, which ends every other command, has it read its
// configuration again, and SIGTERM ends it.
func TestAHangupEndsNoService(t *testing.T) {
	cmd, log := aService(t, t.TempDir())
	// It says that it runs a moment before it listens for the signal.
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(log); s.Scan(); {
			lines <- s.Text()
		}
	}()
	said, runs, read := "", false, false
	for open := true; open; {
		var line string
		select {
		case line, open = <-lines:
			said += line + "\n"
		case <-again.C:
			if runs && !read {
				_ = cmd.Process.Signal(syscall.SIGHUP)
			}
		}
		runs = runs || strings.Contains(line, `msg="mesh-host runs"`)
		if strings.Contains(line, "is read again") && !read {
			read = true
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	if err := cmd.Wait(); err != nil || !read {
		t.Errorf("%v:\n%s", err, said)
	}
}

// H-11: the journal is restarted, and nobody reads the log any more.
func TestH11AServiceOutlivesTheReaderOfItsLog(t *testing.T) {
	root := t.TempDir()
	cmd, log := aService(t, root)
	for s := bufio.NewScanner(log); s.Scan() && !strings.Contains(s.Text(), `msg="mesh-host runs"`); {
	}
	log.Close()
	_ = cmd.Process.Signal(syscall.SIGHUP) // it says that it reads its configuration again
	m := machine{t, root}
	if out, _ := m.host(0, "status"); !strings.Contains(out, "running") {
		t.Errorf("it does not run any more:\n%s", out)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
