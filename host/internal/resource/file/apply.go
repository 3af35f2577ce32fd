package file

import (
	"context"
	"fmt"
	"path"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Apply implements resource.Kind.
func (k *Kind) Apply(ctx context.Context, want resource.Want, prior *resource.Record, found resource.State) error {
	defer k.leave()
	f := want.Resource.File
	if err := k.apply(ctx, want, prior, found); err != nil {
		verb := "write"
		switch {
		case f.Directory:
			verb = "make the directory"
		case f.Target != "":
			verb = "make the symlink"
		}
		return cannot(verb, f.Path, err)
	}
	return nil
}

func (k *Kind) apply(ctx context.Context, want resource.Want, prior *resource.Record, found resource.State) (err error) {
	w, err := k.wish(want.Resource.File)
	if err != nil {
		return err
	}
	if err := w.ready(); err != nil {
		return err
	}
	p, err := k.open(w.file.Path)
	if err != nil {
		return err
	}
	defer p.close()
	if err := k.mayTouch(p, w); err != nil {
		return err
	}
	have, err := p.look(ctx)
	if err != nil {
		return err
	}
	if len(w.differences(have)) == 0 {
		// It was put in place by a call whose sync of the directory failed, or that
		// was killed before it.
		return p.dir.Sync()
	}
	if err := w.mayReplace(have); err != nil {
		return err
	}
	if k.vet != nil && w.Kind == file && w.file.Source != "" && have.Digest != w.Digest {
		if err := k.vet(ctx, w.file.Path, w.Digest); err != nil {
			return err
		}
	}
	if err := k.keep(ctx, p, have, w, want.Resource.TakeOver, prior, found); err != nil {
		return err
	}
	if len(p.missing) > 0 {
		made, err := k.makeParents(p)
		if err == nil {
			err = k.put(ctx, p, have, w)
		}
		if err != nil {
			k.dropEmpty(made)
		}
		return err
	}
	return k.put(ctx, p, have, w)
}

// mayReplace returns an error unless a thing of the wished kind may take the
// place of t.
func (w *wish) mayReplace(t thing) error {
	if t.Kind == nothing || t.Kind == w.Kind {
		return nil
	}
	if w.Kind != directory && (t.Kind == file || t.Kind == symlink) {
		return nil
	}
	return fmt.Errorf("%s is there, and %s does not take its place; move it away by hand", t.Kind.article(), w.Kind.article())
}

// keep makes sure that what is about to be replaced can be given back: the
// content of a file that was there before the host goes into the content store.
func (k *Kind) keep(ctx context.Context, p *place, have thing, w *wish, takeOver bool, prior *resource.Record, found resource.State) error {
	said := found.Found
	if prior != nil {
		// What is there is ours, or drift. Only what was adopted and is still
		// as it was then is somebody's.
		if !prior.Adopted {
			return nil
		}
		before, err := parseThing(prior.Before)
		if err != nil {
			return err
		}
		if !have.same(before) {
			return nil
		}
		said = prior.Before
	}
	was, err := parseThing(said)
	if err != nil {
		return err
	}
	if have.Kind != file {
		if !have.same(was) {
			return errMoved
		}
		return nil
	}
	if !w.keepable(have) {
		if takeOver {
			return nil
		}
		return fault.Failedf("the file that is there has %d bytes, and only %d can be kept to be given back", have.Size, int64(MaxKept)).
			Hint("move it away, or set take_over to let it go")
	}
	if !have.same(was) {
		return errMoved
	}
	if have.Digest == w.file.Source {
		return nil // the declaration brought it
	}
	f, err := p.openFile(have)
	if err != nil {
		return err
	}
	defer f.Close()
	kept, _, err := k.content.Add(ctx, f, MaxKept)
	if err != nil {
		return fmt.Errorf("the file that is there cannot be kept: %w", cause(err))
	}
	if kept != have.Digest {
		return errMoved
	}
	return nil
}

// makeParents makes the missing directories, leads p into the last, and
// returns the paths of those it made, also with an error. One that another
// resource made in the meantime is as good.
func (k *Kind) makeParents(p *place) (made []string, err error) {
	attr := durable.Perm(0o755)
	if k.root {
		attr.UID, attr.GID = 0, 0
	}
	paths := p.parents()
	k.making.Lock() // two of our own would take away each other's half-made ones
	defer k.making.Unlock()
	// Who holds the lock waits for nobody who waits for it.
	p.dir.Share(nil)
	defer func() { p.dir.Share(k.barrier) }()
	for i, name := range p.missing {
		err := p.dir.Mkdir(name, attr)
		if err == nil {
			made = append(made, paths[i])
		} else if !isExist(err) {
			return made, fmt.Errorf("its directory %q: %w", paths[i], cause(err))
		}
		dir, err := openBelow(p.dir, name)
		if err != nil {
			return made, err
		}
		p.close()
		p.dir = dir
	}
	p.missing = nil
	return made, nil
}

// dropEmpty removes the directories, the outermost first in the list, as far
// as they are empty. What cannot be removed is left: it does no harm.
func (k *Kind) dropEmpty(dirs []string) {
	for i := len(dirs) - 1; i >= 0; i-- {
		if path.Clean(dirs[i]) != dirs[i] || !path.IsAbs(dirs[i]) {
			return
		}
		p, err := k.open(dirs[i])
		if err != nil {
			return
		}
		if len(p.missing) == 0 {
			err = p.dir.Rmdir(p.name)
		}
		p.close()
		if err != nil && !isNotExist(err) {
			return
		}
	}
}

// Recover sweeps what a crash in the middle of Apply or Remove left beside the
// file. The engine calls it for every open intent before it looks.
func (k *Kind) Recover(_ context.Context, r declaration.Resource) error {
	p, err := k.open(r.File.Path)
	if err != nil {
		return cannot("sweep beside", r.File.Path, err)
	}
	defer p.close()
	if k.mayTouch(p, wishOf(r.File)) != nil {
		return nil
	}
	name := p.name
	if len(p.missing) > 0 {
		name = p.missing[0]
	}
	if err := p.dir.Sweep(name); err != nil {
		return cannot("sweep beside", r.File.Path, err)
	}
	// What is recorded now may have been put in place by a call that was killed
	// before the directory was on the disk.
	if err := p.dir.Sync(); err != nil {
		return cannot("sync beside", r.File.Path, err)
	}
	return nil
}
