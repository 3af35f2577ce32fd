package file

import (
	"context"
	"io"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// Texts returns the content that is there and the content that is wanted, each
// of at most max bytes and nil when it is no file. Nothing of a secret is
// returned: not what is wanted, and not what is there, which may be an older
// one.
func (k *Kind) Texts(ctx context.Context, want resource.Want, max int64) (have, wanted []byte, err error) {
	f := want.Resource.File
	if f.Secret {
		return nil, nil, nil
	}
	w := wishOf(f)
	p, err := k.open(f.Path)
	if err != nil {
		return nil, nil, cannot("look at", f.Path, err)
	}
	defer p.close()
	if err := k.mayTouch(p, w); err != nil {
		return nil, nil, cannot("look at", f.Path, err)
	}
	t, err := p.look(ctx)
	if err != nil {
		return nil, nil, cannot("look at", f.Path, err)
	}
	if t.Kind == file {
		if have, err = p.text(t, max); err != nil {
			return nil, nil, cannot("read", f.Path, err)
		}
	}
	if w.Kind != file {
		return have, nil, nil
	}
	src, err := k.source(w)
	if err != nil {
		return nil, nil, cannot("read", f.Path, err)
	}
	defer src.Close()
	wanted, err = io.ReadAll(io.LimitReader(src, max))
	return have, wanted, err
}

// text reads at most max bytes of the file that t is.
func (p *place) text(t thing, max int64) ([]byte, error) {
	f, err := p.openFile(t)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max))
}
