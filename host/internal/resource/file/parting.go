package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A leaving is what is no longer declared, and what becomes of it.
type leaving struct {
	*place
	have, before thing
	// why it is let go of, or "" when it is taken away.
	why string
	// changed: somebody made something else of it, which is kept beside.
	changed bool
	// back: what was there before comes back.
	back bool
}

const notEmpty = "it is not empty"

// leaving looks at what is no longer declared and decides. Whether a directory
// that goes is empty is not known before rmdir(2).
func (k *Kind) leaving(ctx context.Context, f *declaration.File, record resource.Record) (_ *leaving, err error) {
	l := &leaving{}
	if l.before, err = parseThing(record.Before); err != nil {
		return nil, err
	}
	if l.place, err = k.open(f.Path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	err = k.mayTouch(l.place, &wish{file: &declaration.File{Path: f.Path, Directory: true, Owner: "root"}})
	if fault.KindOf(err) == fault.Refused {
		l.why = fmt.Sprintf("it is left as it is: %v", err)
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if l.have, err = l.look(ctx); err != nil {
		return nil, err
	}
	w, have, before := wishOf(f), l.have, l.before
	switch {
	case have.Kind == nothing:
	case record.Adopted && (before.Kind == nothing || before.same(w.thing)):
		l.why = "it was there before the host owned it"
	case w.Kind == directory && have.Kind == directory:
		if l.back = before.Kind == directory; l.back {
			l.why = "it was there before; it has its mode and owner of then"
		}
	case w.Kind == directory || have.Kind != file && have.Kind != symlink:
		l.why = fmt.Sprintf("it is %s now, which the host did not make", have.Kind.article())
	default:
		l.changed = !have.same(w.thing) && !k.putBack(f, have)
		l.back = (before.Kind == file || before.Kind == symlink) && !l.lost()
	}
	return l, nil
}

// lost: what was there before was too large to be kept.
func (l *leaving) lost() bool { return l.before.Kind == file && l.before.Digest == "" }

// A parting knows what went before, since by then a directory may be empty. One
// that hangs is not waited for: the next is told while it goes on.
type parting struct {
	*Kind
	mu   sync.Mutex
	fate map[string]fate
	// kept are directories in which something is put beside.
	kept map[string]bool
}

// fate is what becomes of a path.
type fate int

const (
	stays fate = iota
	// made: a directory that goes when it is empty.
	made
	goes
)

// Parting says why Remove would release a file, a symlink or a directory.
func (k *Kind) Parting() func(context.Context, resource.Record) (string, error) {
	surveyed := *k
	surveyed.chart = k.survey()
	p := &parting{Kind: &surveyed, fate: map[string]fate{}, kept: map[string]bool{}}
	return p.why
}

func (p *parting) why(ctx context.Context, record resource.Record) (string, error) {
	r, err := declaration.FromSpec("recorded", record.Spec)
	if err != nil {
		return "", err
	}
	at := r.File.Path
	l, err := p.leaving(ctx, r.File, record)
	if err != nil {
		return "", cannot("remove", at, err)
	}
	defer l.close()
	if l.why == "" && l.have.Kind == directory && p.filled(ctx, l.dir.FD(), l.name, at) {
		l.why = notEmpty
	}
	if err := ctx.Err(); err != nil {
		return "", cannot("remove", at, err)
	}
	if l.why != "" {
		return l.why, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !l.back {
		p.fate[at] = goes
	}
	if l.changed {
		p.kept[path.Dir(at)] = true
	}
	for _, dir := range l.before.Parents {
		p.fate[dir] = max(p.fate[dir], made)
	}
	return "", nil
}

func (p *parting) of(name string) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fate[name]
}

func (p *parting) keeps(dir string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept[dir]
}

// portion is how many names are read of a directory before they are looked at: of
// a million, one that stays is enough.
const portion = 128

// filled reports whether something stays in the directory called name below the
// open one, when what went before is gone: it is at path. One that cannot be read
// is for rmdir(2) to tell.
func (p *parting) filled(ctx context.Context, below int, name, at string) bool {
	if p.keeps(at) {
		return true
	}
	fd, err := unix.Openat(below, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return true // somebody put something else in its place
	}
	if err != nil {
		return false
	}
	dir := os.NewFile(uintptr(fd), at)
	defer dir.Close()
	for ctx.Err() == nil {
		names, err := dir.Readdirnames(portion)
		for _, name := range names {
			in := path.Join(at, name)
			switch p.of(in) {
			case stays:
				return true
			case made:
				if p.filled(ctx, fd, name, in) {
					return true
				}
			}
		}
		if err != nil {
			return false
		}
	}
	return false
}
