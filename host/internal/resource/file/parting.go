package file

import (
	"context"
	"fmt"
	"os"
	"path"

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
		l.changed = !have.same(w.thing)
		l.back = (before.Kind == file || before.Kind == symlink) && !l.lost()
	}
	return l, nil
}

// lost: what was there before was too large to be kept.
func (l *leaving) lost() bool { return l.before.Kind == file && l.before.Digest == "" }

// A parting knows what went before, since by then a directory may be empty.
type parting struct {
	*Kind
	gone map[string]bool
	// made are directories that go when they are empty.
	made map[string]bool
	// kept are directories in which something is put beside.
	kept map[string]bool
}

// Parting says why Remove would release a file, a symlink or a directory.
func (k *Kind) Parting() func(context.Context, resource.Record) (string, error) {
	surveyed := *k
	surveyed.chart = k.survey()
	p := &parting{&surveyed, map[string]bool{}, map[string]bool{}, map[string]bool{}}
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
	if l.why == "" && l.have.Kind == directory && !p.empty(at) {
		l.why = notEmpty
	}
	if l.why != "" {
		return l.why, nil
	}
	p.gone[at] = !l.back
	if l.changed {
		p.kept[path.Dir(at)] = true
	}
	for _, dir := range l.before.Parents {
		p.made[dir] = true
	}
	return "", nil
}

// empty reports whether the directory will be when what went before is gone. One
// that cannot be read is for rmdir(2) to tell.
func (p *parting) empty(dir string) bool {
	if p.kept[dir] {
		return false
	}
	list, err := os.ReadDir(p.layout.Path(dir))
	if err != nil {
		return true
	}
	for _, e := range list {
		name := path.Join(dir, e.Name())
		if !p.gone[name] && !(p.made[name] && e.IsDir() && p.empty(name)) {
			return false
		}
	}
	return true
}
