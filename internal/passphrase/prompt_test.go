package passphrase

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal makes a terminal, pty(7): where a person sits, and what a program
// opens.
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
	if err := person.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return person, program
}

func echoes(t *testing.T, tty *os.File) bool {
	t.Helper()
	var m *unix.Termios
	c, err := tty.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if e := c.Control(func(fd uintptr) { m, err = unix.IoctlGetTermios(int(fd), unix.TCGETS) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	return m.Lflag&unix.ECHO != 0
}

type answer struct {
	line []byte
	err  error
}

func asked(ctx context.Context, t *testing.T, person, program *os.File) <-chan answer {
	t.Helper()
	out := make(chan answer, 1)
	go func() {
		line, err := prompt(ctx, program, "Passphrase: ")
		out <- answer{line, err}
	}()
	if said, err := bufio.NewReader(person).ReadString(' '); err != nil || said != "Passphrase: " {
		t.Fatalf("%q, %v", said, err)
	}
	if echoes(t, program) {
		t.Error("what is typed would be seen")
	}
	return out
}

func TestThePromptCanBeInterrupted(t *testing.T) {
	person, program := terminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := asked(ctx, t, person, program)
	cancel()
	select {
	case got := <-out:
		if got.err == nil || !strings.Contains(got.err.Error(), "it was interrupted") || got.line != nil {
			t.Errorf("%q, %v", got.line, got.err)
		}
	case <-time.After(20 * time.Second):
		person.Close() // ends the read
		t.Fatal("it waits for ever")
	}
	if !echoes(t, program) {
		t.Error("the terminal does not echo afterwards")
	}
}

func TestThePromptReadsALineUnseen(t *testing.T) {
	person, program := terminal(t)
	out := asked(t.Context(), t, person, program)
	if _, err := person.WriteString("correct horse\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-out; got.err != nil || string(got.line) != "correct horse" {
		t.Errorf("%q, %v", got.line, got.err)
	}
	if !echoes(t, program) {
		t.Error("the terminal does not echo afterwards")
	}
	if err := person.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	shown := make([]byte, 100)
	if n, _ := person.Read(shown); strings.TrimSpace(string(shown[:n])) != "" {
		t.Errorf("the terminal shows %q", shown[:n])
	}
}
