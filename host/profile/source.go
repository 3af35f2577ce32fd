package profile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A source is where facts are looked for.
type source struct {
	// files is the system that is installed, kernel the machine that runs: /proc,
	// /sys, and what is laid down for a container at its start.
	files, kernel layout.Layout
	looks         *looks
	asked         *answers
	// What is asked of the kernel and not read of a file; a test has its own.
	statfs     func(string, *unix.Statfs_t) error
	interfaces func() ([]net.Interface, error)
	addresses  func(net.Interface) ([]net.Addr, error)
	cpu        func() (virtual bool, signature string)
}

// open are the looks of this process, asked what runtimes answered it.
var (
	open  looks
	asked = answers{clock: clock.System}
)

func machine(l layout.Layout) source {
	return source{
		files: l, looks: &open, asked: &asked, statfs: unix.Statfs, interfaces: net.Interfaces,
		addresses: func(i net.Interface) ([]net.Addr, error) { return i.Addrs() }, cpu: cpuSays,
	}
}

// alone says that the system that is installed is that of the machine, and not
// one of several trees on it.
func (s source) alone() bool { return s.files == s.kernel }

// maxFact bounds what is read of one file, in bytes.
const maxFact = 64 << 10

// read returns the content of a small regular file, nil when there is none. It
// does not wait for the other end of a fifo that lies in its place.
func read(path string) ([]byte, error) { return readUpTo(path, maxFact) }

func readUpTo(path string, most int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil || f == nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%q is larger than %d KiB", path, most>>10)
	}
	return b, nil
}

// openRegular opens a regular file; nil when there is none.
func openRegular(path string) (*os.File, error) {
	f, _, err := input.Regular(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	return f, err
}

// openDir opens a folder, and nothing that lies in its place.
func openDir(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// attribute is a file of one line that the kernel shows, "" when it cannot be
// read: drivers answer many of them with an error.
func (s source) attribute(path string) string {
	b, err := read(s.kernel.Path(path))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(strings.TrimRight(first, "\x00"))
}

func exists(l layout.Layout, paths ...string) bool {
	for _, path := range paths {
		if _, err := os.Stat(l.Path(path)); err != nil {
			return false
		}
	}
	return true
}

// word is what a fact may be: short, and nothing that drives a terminal.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~:-]{0,127}$`)

func clean(s string) string {
	if s = strings.TrimSpace(s); word.MatchString(s) {
		return s
	}
	return ""
}

// maxLine bounds a sentence, in bytes.
const maxLine = 200

// line makes of s one line of what can be printed, not too long.
func line(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, strings.TrimSpace(s))
	if len(s) <= maxLine {
		return s
	}
	return strings.ToValidUTF8(s[:maxLine], "") + "…"
}
