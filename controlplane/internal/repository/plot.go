package repository

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/seed"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A plot is the seed's directory, opened. The host writes below it as root, in a
// directory that is the control plane's own, so nothing is believed of its names:
// no symlink in it is followed, and what was opened is verified as it was opened.
type plot struct{ fd int }

// openPlot opens the seed; fs.ErrNotExist is in the chain when there is none.
func openPlot(dir string) (*plot, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return &plot{fd}, nil
}

func (p *plot) close() { _ = unix.Close(p.fd) }

// open opens a file by its name in the list.
func (p *plot) open(name string) (*os.File, error) {
	fd, err := unix.Openat2(p.fd, name, &unix.OpenHow{
		// A fifo in its place does not hold us up.
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// read returns a whole file of at most max bytes.
func (p *plot) read(name string, max int64) ([]byte, error) {
	f, err := p.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(err, fault.Refusedf("%q is no regular file", name))
	}
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = fault.Refusedf("%q has more than %d bytes", name, max)
	}
	return b, err
}

// stamp changes when anything in the seed does. It reads no content but the
// list's; "" is that there is no seed.
func stamp(dir string) string {
	p, err := openPlot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	defer p.close()
	names := []string{seed.ListName, seed.ListName + trust.SignatureSuffix}
	if b, err := p.read(seed.ListName, seed.MaxList); err == nil {
		if l, err := seed.Parse(b); err == nil {
			for _, f := range l.Files {
				names = append(names, f.Name)
			}
		}
	}
	out := ""
	for _, name := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(p.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			out += fmt.Sprintln(name, err)
			continue
		}
		out += fmt.Sprintln(name, st.Dev, st.Ino, st.Size, st.Ctim)
	}
	return out
}
