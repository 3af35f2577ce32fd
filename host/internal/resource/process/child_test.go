package process

import (
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
)

// TestMain makes the test binary three programs: the tests, the launcher copy
// that runs shims, and, called by the name "child", a declared process.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "child" {
		childMain(os.Args[1:])
	}
	if len(os.Args) > 1 && os.Args[1] == "shim" {
		// Not os.Exit: the race detector would sleep for a second first.
		syscall.Exit(supervise.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// childMain appends a line to starts, renames a file to "up" (a rename is what
// a test waits for), and then lives until SIGUSR1, or exits with a code.
func childMain(args []string) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	f, err := os.OpenFile(filepath.Join(os.Getenv("NOX_ROOT"), "starts"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		panic(err)
	}
	f.WriteString(strings.Join(args, " ") + "\n")
	f.Close()
	up := filepath.Join(os.Getenv("NOX_ROOT"), "up")
	if _, err := os.Lstat(filepath.Join(os.Getenv("NOX_ROOT"), "quiet")); err != nil {
		if err := os.Symlink("up", up+".new"); err != nil {
			panic(err)
		}
		os.Rename(up+".new", up)
	}
	if code, err := strconv.Atoi(args[0]); err == nil {
		syscall.Exit(code)
	}
	<-c
	syscall.Exit(0)
}
