package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A person sits at a real terminal, pty(7), where mesh-release asks for a passphrase.
type person struct {
	*os.File
	tty  *os.File
	cmd  *exec.Cmd
	said bytes.Buffer
}

// asked runs "keys init" for keys in dir until it has asked.
func asked(t *testing.T, dir string, flags ...string) *person {
	t.Helper()
	at, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	t.Cleanup(func() { at.Close() })
	c, err := at.SyscallConn()
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
	t.Cleanup(func() { tty.Close() })
	if err := at.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	p := &person{File: at, tty: tty, cmd: exec.CommandContext(t.Context(), "mesh-release", append([]string{"keys", "init", dir}, flags...)...)}
	p.cmd.Env = append(os.Environ(), "NOX_PASSPHRASE_FILE=")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.until(t, "Passphrase: ")
	if p.sees(t) {
		t.Error("what is typed would be seen")
	}
	return p
}

func (p *person) types(t *testing.T, text string) {
	t.Helper()
	if _, err := p.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// until reads what the terminal shows, up to end.
func (p *person) until(t *testing.T, end string) {
	t.Helper()
	b := make([]byte, 1024)
	for !strings.Contains(p.said.String(), end) {
		n, err := p.Read(b)
		p.said.Write(b[:n])
		if err != nil {
			t.Fatalf("no %q in %q: %v", end, p.said.String(), err)
		}
	}
}

func (p *person) sees(t *testing.T) bool {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return m.Lflag&unix.ECHO != 0
}

// heedHangup has what the test starts end of a SIGHUP, though the test itself may be
// run under nohup(1): what is ignored is inherited, what is handled is not (signal(7)).
func heedHangup(t *testing.T) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hup) })
}

// TestWhatEndsThePassphrasePrompt leaves the terminal one in which it is seen what is
// typed, and no keys.
func TestWhatEndsThePassphrasePrompt(t *testing.T) {
	heedHangup(t)
	for what, end := range map[string]func(t *testing.T, p *person){
		"Ctrl-C": func(t *testing.T, p *person) { p.types(t, "\x03") },
		"the terminal's other end says good-bye": func(t *testing.T, p *person) {
			if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		},
		// These would end and stop it as it is, and do nothing instead.
		`Ctrl-\, Ctrl-Z, and then Ctrl-C`: func(t *testing.T, p *person) { p.types(t, "a\x1c\x1ab\x03") },
	} {
		ends := func(t *testing.T, flags ...string) {
			dir := filepath.Join(t.TempDir(), "keys")
			p := asked(t, dir, flags...)
			end(t, p)
			p.until(t, "mesh-release: cannot ask for the passphrase: it was interrupted\r\n")
			var exit *exec.ExitError
			if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("%v, want exit code 1", err)
			}
			if !p.sees(t) {
				t.Error("the terminal does not echo afterwards")
			}
			if _, err := os.Stat(filepath.Join(dir, "1.root.json")); err == nil {
				t.Error("keys were made")
			}
		}
		t.Run(what, func(t *testing.T) { ends(t) })
		// Nor is it seen where standard input is a terminal and named.
		t.Run(what+", standard input", func(t *testing.T) { ends(t, "--passphrase-file", "-") })
	}
}

// TestAClosedTerminalLeavesNoHalfBundle hangs up while a large bundle is written.
func TestAClosedTerminalLeavesNoHalfBundle(t *testing.T) {
	heedHangup(t)
	dir := t.TempDir()
	t.Chdir(dir)
	lay := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lay("secret", "correct horse")
	if out, err := exec.CommandContext(t.Context(), "mesh-release", "keys", "init", "keys", "--passphrase-file", "secret").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lay("bundle.toml", "name = \"web\"\nversion = \"1.0.0\"\narchitecture = \"x86_64\"\ndeclarations = [\"web.json\"]\n\n[[file]]\ntitle = \"tool\"\npath = \"tool\"\n")
	lay("web.json", `{"schema": 1, "name": "web", "generation": 3, "resources": [
  {"id": "tool", "type": "file", "path": "/opt/tool", "mode": "0755", "source": "file:tool"}
]}`)
	lay("tool", "")
	if err := os.Truncate("tool", 512<<20); err != nil { // a hole, which takes no room
		t.Fatal(err)
	}
	if err := os.Mkdir("out", 0o700); err != nil {
		t.Fatal(err)
	}
	left := func() []string {
		t.Helper()
		found, err := filepath.Glob("out/.*")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}

	cmd := exec.CommandContext(t.Context(), "mesh-release", "bundle", "create", "bundle.toml", "--counter", "1",
		"--keys", "keys", "--passphrase-file", "secret", "--out", "out/b.tar", "--json")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), `"event":"begin","doing":"writing"`) {
			if len(left()) == 0 {
				t.Error("nothing is being written: this shows nothing")
			}
			// As the shell and the kernel do, both.
			for range 2 {
				_ = cmd.Process.Signal(syscall.SIGHUP)
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v, want exit code 1:\n%s", err, said)
	}
	if found := left(); len(found) > 0 {
		t.Errorf("it leaves %v:\n%s", found, said)
	}
}

// TestNoPassphraseIsInACore ends mesh-release by SIGQUIT, at which Go dumps the core
// when it is told to, while it has the passphrase.
func TestNoPassphraseIsInACore(t *testing.T) {
	dumps := func(line string) bool {
		dir := t.TempDir()
		fifo := filepath.Join(dir, "given")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "ulimit -c unlimited && "+line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOTRACEBACK=crash")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		to, err := os.OpenFile(fifo, os.O_WRONLY, 0) // it reads now
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		if _, err := to.WriteString("correct horse"); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		how := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !how.Signaled() {
			t.Errorf("it ended by itself: %v", cmd.ProcessState)
		}
		return how.CoreDump()
	}
	if dumps("exec mesh-release keys init keys --passphrase-file given") {
		t.Error("the core was dumped")
	}
	if !dumps("exec cat given") {
		t.Skip("no program leaves a core here: that this one does not shows nothing")
	}
}
