package progress

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain is also the program that some tests start.
func TestMain(m *testing.M) {
	switch os.Getenv("PROGRESS_TEST") {
	case "front":
		fmt.Print(terminalOf(os.Stderr).ours())
		behind := exec.Command("/proc/self/exe")
		behind.Env = []string{"PROGRESS_TEST=behind"}
		behind.Stdout, behind.Stderr = os.Stdout, os.Stderr
		behind.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := behind.Run(); err != nil {
			fmt.Print(err)
		}
	case "behind":
		fmt.Print(" ", terminalOf(os.Stderr).ours())
	case "unread":
		r := New(os.Stderr, Options{})
		r.Step("compiling")
		r.Close()
		fmt.Print("alive")
	default:
		os.Exit(m.Run())
	}
}

// pty opens a terminal; what it shows is read from screen.
func pty(t *testing.T, columns uint16) (screen, terminal *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no terminal can be opened: %v", err)
	}
	screen = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	resize(t, terminal, columns)
	return screen, terminal
}

func resize(t *testing.T, terminal *os.File, columns uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
}

// shown is what came to the terminal up to and with the mark, which the test
// writes itself. The kernel brings it there in its own time, whatever the
// test's clock says.
func shown(t *testing.T, screen, terminal *os.File) string {
	t.Helper()
	const mark = "<mark>"
	if _, err := terminal.WriteString(mark); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for !bytes.HasSuffix(all, []byte(mark)) {
		fds := []unix.PollFd{{Fd: int32(screen.Fd()), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, 5000); err != nil && err != unix.EINTR || n == 0 && err == nil {
			t.Fatalf("%q, and no mark: %v", all, err)
		}
		b := make([]byte, 4096)
		if n, err := unix.Read(int(screen.Fd()), b); err == nil {
			all = append(all, b[:n]...)
		}
	}
	return strings.TrimSuffix(string(all), mark)
}

func xterm(string) string { return "xterm" }

func TestALineIsDrawnInPlaceAndCleared(t *testing.T) {
	screen, terminal := pty(t, 80)
	synctest.Test(t, func(t *testing.T) {
		r := New(terminal, Options{Getenv: xterm})
		r.Step("compiling mesh-host")
		r.Begin("reading", "site.bundle.tar")
		copyMiB(r, 10*time.Millisecond, 0, 200, 1000)
		synctest.Wait()
		got := shown(t, screen, terminal)
		if !strings.HasPrefix(got, "compiling mesh-host\r\n\rblob-") {
			t.Errorf("begins %q", got)
		}
		// From 0.3 s to 2 s, at most ten times a second.
		if n := strings.Count(got, "\r") - 1; n < 16 || n > 18 {
			t.Errorf("drawn %d times", n)
		}
		if want := "\x1b[K\rblob-1          199 MiB/1000 MiB   19%  [##---------]   100 MiB/s  8 s left\x1b[K"; !strings.HasSuffix(got, want) {
			t.Errorf("%q, want the end %q", got, want)
		}

		resize(t, terminal, 40)
		copyMiB(r, 10*time.Millisecond, 200, 221, 1000)
		synctest.Wait()
		got = shown(t, screen, terminal)
		if want := "\rblob-2         219 MiB/1000 MiB   21%\x1b[K"; !strings.HasSuffix(got, want) {
			t.Errorf("with 40 columns %q, want %q", got, want)
		}

		r.End()
		if got := shown(t, screen, terminal); got != "\r\x1b[K" {
			t.Errorf("the end writes %q", got)
		}
		r.Close()
		if got := shown(t, screen, terminal); got != "" {
			t.Errorf("the close writes %q", got)
		}
	})
}

func TestNothingFlickersAndNothingIsColoured(t *testing.T) {
	screen, terminal := pty(t, 80)
	synctest.Test(t, func(t *testing.T) {
		r := New(terminal, Options{Getenv: xterm})
		r.Begin("reading", "small.tar")
		copyMiB(r, 10*time.Millisecond, 0, 28, 28)
		r.End()
		if got := shown(t, screen, terminal); got != "" {
			t.Errorf("a short work shows %q", got)
		}
		r.Begin("reading", "large.tar")
		copyMiB(r, 10*time.Millisecond, 0, 100, 100)
		r.Close()
		got := regexp.MustCompile("\x1b\\[[^K]").FindString(shown(t, screen, terminal))
		if got != "" {
			t.Errorf("%q is written", got)
		}
	})
}

func TestADumbTerminalGetsLines(t *testing.T) {
	for _, term := range []string{"dumb", ""} {
		screen, terminal := pty(t, 80)
		synctest.Test(t, func(t *testing.T) {
			r := New(terminal, Options{Getenv: func(string) string { return term }})
			r.Begin("reading", "x")
			copyMiB(r, 200*time.Millisecond, 0, 20, 20)
			r.Close()
			want := "reading x: 20 MiB\r\nreading x: 20 MiB in 4 s, 5.0 MiB/s\r\n"
			if got := shown(t, screen, terminal); got != want {
				t.Errorf("TERM=%s: %q, want %q", term, got, want)
			}
		})
	}
}

func TestTheBackgroundDrawsNothing(t *testing.T) {
	var l log
	front := true
	s := &terminal{columns: func() int { return 80 }, ours: func() bool { return front }}
	w := work{what: "x", elapsed: time.Minute}
	if s.tick(w) == nil {
		t.Error("nothing is drawn in the foreground")
	}
	front = false
	l.Write(s.tick(w))
	l.Write(s.end(w))
	if l.String() != "" {
		t.Errorf("%q is written from the background", l.String())
	}
}

func TestWhoIsInTheForegroundIsKnown(t *testing.T) {
	_, terminal := pty(t, 80)
	self := exec.Command("/proc/self/exe")
	self.Env = []string{"PROGRESS_TEST=front"}
	self.Stdin, self.Stderr = terminal, terminal
	self.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	out, err := self.Output()
	if err != nil || string(out) != "true false" {
		t.Errorf("the foreground and the background are ours: %s, %v", out, err)
	}
}

func TestALogThatNobodyReadsKillsNothing(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	self := exec.Command("/proc/self/exe")
	self.Env = []string{"PROGRESS_TEST=unread"}
	self.Stderr = w
	out, err := self.Output()
	if err != nil || string(out) != "alive" {
		t.Errorf("%q, %v", out, err)
	}
}
