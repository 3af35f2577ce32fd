package file

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// What is the host's own is refused where the directory of the name is held
// open: by then no symlink, mount or rename leads elsewhere any more. The
// directories from there up to the root are compared with those that lead to
// the host's own, by device and inode, and each that is one of them gives the
// path a spelling that declaration.File.Own can judge. What is spelled
// "/mnt/b/host/x", where /mnt/b is the state directory once more, is judged as
// "/var/lib/nox-mesh/host/x".

// spellings returns the paths the place has, seen from the landmarks.
func (k *Kind) spellings(p *place, c *chart) ([]string, error) {
	dir, err := k.whereabouts(p, c)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, known := range dir.paths {
		out = append(out, path.Join(known, path.Join(p.missing...), p.name))
	}
	if len(p.missing) == 0 {
		i, ok, err := directoryAt(p.dir.FD(), p.name, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && !isNotExist(err) {
			return nil, err
		}
		for _, m := range dir.marks {
			if ok && m.same(i) {
				out = append(out, m.path)
			}
		}
	}
	return out, nil
}

// mayTouch refuses the file when its place is the host's own, whatever it is
// called.
func (k *Kind) mayTouch(p *place, w *wish) error {
	if err := notProcess(p.dir.FD(), path.Dir(p.path)); err != nil {
		return err
	}
	c := k.chart
	if c == nil {
		c = k.survey()
	}
	spellings, err := k.spellings(p, c)
	if err != nil {
		return err
	}
	units := w.file.InUnitDir()
	for _, s := range spellings {
		f := *w.file
		f.Path = s
		if _, why := f.Own(c.own); why != "" {
			return fault.Refusedf("it is the host's to decide: %s", why)
		}
		units = units || f.InUnitDir()
	}
	switch {
	case units && w.Kind == file && w.file.Content == nil:
		return k.mayBeUnit(w)
	case units && w.Kind == symlink:
		return k.mayLead(p, w, c, spellings)
	}
	return nil
}

// mayLead is mayTouch for where a symlink in systemd's directories leads in the
// end, through all that are there now.
func (k *Kind) mayLead(p *place, w *wish, c *chart, spellings []string) error {
	to, err := k.end(p, w.Target, c)
	if err != nil {
		return fault.Refusedf("cannot tell where %q leads: %w", w.Target, err)
	}
	for _, name := range append(spellings, w.file.Path) { // one of them is in systemd's directories
		f := *w.file
		f.Path, f.Target = name, to
		if _, why := f.Own(c.own); why != "" {
			return fault.Refusedf("it leads to %q in the end: %s", to, why)
		}
	}
	return nil
}

// end follows a symlink with that target at the place, and the symlinks it
// leads to. What is not there stays as it is written; what is in systemd's
// directories is spelled so.
func (k *Kind) end(p *place, target string, c *chart) (string, error) {
	from := p.real()
	for range maxLinks {
		// Where a ".." behind a name leads depends on what the name is.
		if strings.Count(target, "..") != strings.Count(path.Clean(target), "..") {
			return "", fmt.Errorf("%q has a %q behind a name", target, "..")
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(from), target)
		}
		at, err := k.open(path.Clean(target))
		if err != nil {
			return "", err
		}
		from = at.real()
		name, next, err := k.hop(at, c)
		at.close()
		if err != nil || next == "" {
			return name, err
		}
		target = next
	}
	return "", unix.ELOOP
}

// hop returns how the place is spelled, and the target of the symlink there, or
// "".
func (k *Kind) hop(p *place, c *chart) (name, target string, err error) {
	if err := notProcess(p.dir.FD(), path.Dir(p.path)); err != nil {
		return "", "", err
	}
	name = p.real()
	spellings, err := k.spellings(p, c)
	if err != nil {
		return "", "", err
	}
	for _, s := range spellings {
		if f := (declaration.File{Path: s}); f.InUnitDir() {
			name = s
		}
	}
	if len(p.missing) > 0 {
		return name, "", nil
	}
	target, err = readlink(p.dir.FD(), p.name)
	if isNotExist(err) || errors.Is(err, unix.EINVAL) { // EINVAL: no symlink (readlink(2))
		err = nil
	}
	return name, target, err
}

// maxUnit bounds the content that is looked at as a unit, in bytes.
const maxUnit = 1 << 20

// mayBeUnit is mayTouch for content that comes by its digest. What cannot be
// read is for others to say; what was read is what is written, because it is
// hashed then.
func (k *Kind) mayBeUnit(w *wish) error {
	if !declaration.UnitText(path.Base(w.file.Path)) {
		return nil
	}
	f, err := k.content.Open(w.file.Source)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxUnit+1))
	switch {
	case err != nil:
		return nil
	case len(b) > maxUnit:
		return fault.Refusedf("it is larger than a unit can be (%d bytes)", maxUnit)
	case digest.FromBytes(b) != w.file.Source:
		return nil
	}
	if why := declaration.OwnInUnit(string(b)); why != "" {
		return fault.Refusedf("its content %s", why)
	}
	return nil
}

// Review refuses a file that Apply would refuse for being the host's own, as
// far as the machine shows that now.
func (k *Kind) Review(r declaration.Resource) error {
	w := wishOf(r.File)
	p, err := k.open(r.File.Path)
	if err == nil {
		defer p.close()
		err = k.mayTouch(p, w)
	}
	if !errors.Is(err, errProcess) && (p == nil || fault.KindOf(err) != fault.Refused) {
		return nil // not about that: the pass will tell
	}
	return cannot("accept", r.File.Path, err)
}

var errProcess = errors.New("it leads through the proc file system, whose links lead anywhere")

// notProcess refuses what lies in procfs: nothing there can be declared, and
// its links (/proc/self/root) lead past every check (proc(5)).
func notProcess(fd int, name string) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	if st.Type == unix.PROC_SUPER_MAGIC {
		return fault.Refusedf("%q on its way: %w", name, errProcess)
	}
	return nil
}
