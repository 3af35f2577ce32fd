package progress

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// firstDrawn is how long a work goes on before it is drawn: what is over
	// sooner would only flicker.
	firstDrawn = 300 * time.Millisecond
	redraw     = 100 * time.Millisecond
	// erase goes to the first column and erases to the end of the line (ECMA-48,
	// CR and EL).
	erase = "\r\x1b[K"
)

// terminal is the style of a terminal: one line, drawn again in place.
type terminal struct {
	// columns is asked for each drawing, which does what SIGWINCH would, and needs
	// no handler.
	columns func() int
	// ours is false in the background (tcgetpgrp(3)), where the terminal is
	// somebody else's to write to.
	ours  func() bool
	drawn string // what stands on the line, "" when it is clear
}

// terminalOf returns the terminal that w is, or nil.
func terminalOf(w io.Writer) *terminal {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	c, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	t := &terminal{
		columns: func() (columns int) {
			_ = c.Control(func(fd uintptr) {
				if s, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
					columns = int(s.Col)
				}
			})
			return columns
		},
		ours: func() bool {
			ours := true
			_ = c.Control(func(fd uintptr) {
				// ENOTTY: it is a terminal, but not the one that controls us.
				if group, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err == nil {
					ours = group == unix.Getpgrp()
				}
			})
			return ours
		},
	}
	is := false
	_ = c.Control(func(fd uintptr) {
		_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		is = err == nil
	})
	if !is {
		return nil
	}
	return t
}

func (*terminal) every() time.Duration { return redraw }

func (t *terminal) step(text string) []byte {
	return append(t.clear(), text+"\n"...)
}

func (t *terminal) begin(work) []byte { return t.clear() }

func (t *terminal) end(work) []byte { return t.clear() }

func (t *terminal) tick(w work) []byte {
	if !t.ours() {
		t.drawn = ""
		return nil
	}
	if w.elapsed < firstDrawn {
		return nil
	}
	line := w.draw(t.columns())
	if line == t.drawn {
		return nil
	}
	t.drawn = line
	return []byte("\r" + line + "\x1b[K")
}

func (t *terminal) clear() []byte {
	if t.drawn == "" || !t.ours() {
		t.drawn = ""
		return nil
	}
	t.drawn = ""
	return []byte(erase)
}
