package secret

import (
	"bufio"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal makes a terminal, pty(7): where a person sits, and what a program opens.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	t.Cleanup(func() { person.Close() })
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
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	for _, f := range []*os.File{person, program} {
		if err := f.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	return person, program
}

// TestWhileNothingIsShownNoKeyLeavesItSo: Ctrl-\ and Ctrl-Z are letters of the line,
// and the terminal is what it was afterwards.
func TestWhileNothingIsShownNoKeyLeavesItSo(t *testing.T) {
	person, program := terminal(t)
	before, err := mode(program, nil)
	if err != nil || before.Lflag&unix.ECHO == 0 || before.Cc[unix.VQUIT] != 0x1c || before.Cc[unix.VSUSP] != 0x1a {
		t.Fatalf("%+v, %v: this is no terminal of a person", before, err)
	}
	show, err := Unseen(program)
	if err != nil {
		t.Fatal(err)
	}
	now, err := mode(program, nil)
	if err != nil || now.Lflag&unix.ECHO != 0 || now.Lflag&unix.ISIG == 0 || now.Cc[unix.VINTR] != 3 {
		t.Errorf("%+v, %v: it is seen, or Ctrl-C does not end it", now, err)
	}
	if _, err := person.WriteString("a\x1cb\x1ac\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(program).ReadString('\n'); err != nil || line != "a\x1cb\x1ac\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := show(); err != nil {
		t.Fatal(err)
	}
	if after, err := mode(program, nil); err != nil || *after != *before {
		t.Errorf("%+v, %v, want %+v", after, err, before)
	}
	if !IsTerminal(program) {
		t.Error("a terminal is none")
	}
	if f, err := os.Open(os.DevNull); err != nil || IsTerminal(f) {
		t.Errorf("/dev/null is a terminal: %v", err)
	}
}
