package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCtrlCEndsThePassphrasePrompt types it at a real terminal: mesh-release
// ended at nothing but a passphrase before.
func TestCtrlCEndsThePassphrasePrompt(t *testing.T) {
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	defer person.Close()
	c, err := person.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if e := c.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); e != nil || err != nil {
		t.Fatal(e, err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	if err := person.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}

	dir := filepath.Join(t.TempDir(), "keys")
	cmd := exec.CommandContext(t.Context(), "mesh-release", "keys", "init", dir)
	cmd.Env = append(os.Environ(), "NOX_PASSPHRASE_FILE=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	var said bytes.Buffer
	until := func(end string) {
		t.Helper()
		b := make([]byte, 1024)
		for !strings.Contains(said.String(), end) {
			n, err := person.Read(b)
			said.Write(b[:n])
			if err != nil {
				t.Fatalf("no %q in %q: %v", end, said.String(), err)
			}
		}
	}
	until("Passphrase: ")
	if _, err := person.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	until("mesh-release: cannot ask for the passphrase: it was interrupted\r\n")
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v, want exit code 1", err)
	}
	m, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if m.Lflag&unix.ECHO == 0 {
		t.Error("the terminal does not echo afterwards")
	}
	if _, err := os.Stat(filepath.Join(dir, "1.root.json")); err == nil {
		t.Error("keys were made")
	}
}
