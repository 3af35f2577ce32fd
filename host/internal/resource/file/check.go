package file

import (
	"context"
	"errors"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// Check implements resource.Kind.
func (k *Kind) Check(ctx context.Context, want resource.Want, prior *resource.Record) (resource.State, error) {
	f := want.Resource.File
	state, err := k.check(ctx, want, prior)
	if errors.As(err, new(resource.Held)) {
		return resource.State{}, err
	}
	if err != nil {
		return resource.State{}, cannot("look at", f.Path, err)
	}
	return state, nil
}

func (k *Kind) check(ctx context.Context, want resource.Want, prior *resource.Record) (resource.State, error) {
	var state resource.State
	w, err := k.wish(want.Resource.File)
	if err != nil {
		return state, err
	}
	p, err := k.open(want.Resource.File.Path)
	if err != nil {
		return state, err
	}
	defer p.close()
	if err := k.mayTouch(p, w); err != nil {
		return state, err
	}
	have, err := p.look(ctx)
	if err != nil {
		return state, err
	}
	state.Exists = have.Kind != nothing
	state.Differences = w.differences(have)
	state.Same = len(state.Differences) == 0
	if err := k.held(w, have, prior); err != nil {
		return state, err
	}
	if err := w.mayReplace(have); err != nil {
		state.Blocked = err.Error()
	}
	// A file and a symlink come by one rename, whole.
	state.Strange = (have.Kind == file || have.Kind == symlink) && !have.same(w.thing)
	if have.Kind == file && !state.Same {
		if state.Note, err = k.lossNote(p, have, w); err != nil {
			return state, err
		}
	}
	if !w.keepable(have) {
		have.Digest = "" // it will not be in the content store
	}
	state.Found, err = have.found()
	return state, err
}

// keepable reports whether the content of the file t is, or can be brought,
// where it can be given back from.
func (w *wish) keepable(t thing) bool {
	return t.Size <= MaxKept || t.Digest == w.file.Source
}
