package recipe

import (
	"context"
	"io"
	"os"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// files reads those of a recipe, until its context ends, and tells how far it
// is.
type files struct {
	ctx  context.Context
	at   bundle.Progress
	told func(bundle.Progress) // nil tells nobody
}

// expect adds to what is to be read. A file that is not there is found later.
func (i *files) expect(paths ...string) {
	for _, path := range paths {
		if fi, err := os.Stat(path); err == nil {
			i.at.Total += fi.Size()
		}
	}
}

// of reads f, which is called title.
func (i *files) of(title string, f io.Reader) io.Reader {
	i.at.Title = title
	return &heard{i, f}
}

type heard struct {
	*files
	r io.Reader
}

func (h *heard) Read(p []byte) (int, error) {
	if err := h.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := h.r.Read(p)
	h.at.Done += int64(n)
	if h.told != nil {
		h.told(h.at)
	}
	return n, err
}

// blob describes a file of the disk; Build hashes it again as it copies it.
func (i *files) blob(title, path string) (bundle.Blob, error) {
	f, _, err := input.Regular(path)
	if err != nil {
		return bundle.Blob{}, err
	}
	defer f.Close()
	h := digest.SHA256.Digester()
	n, err := io.Copy(h.Hash(), i.of(title, f))
	if err != nil {
		return bundle.Blob{}, err
	}
	return bundle.Blob{
		Digest: h.Digest(), Size: n, Title: title, MediaType: bundle.MediaTypeFile,
		Open: func() (io.ReadCloser, error) {
			f, _, err := input.Regular(path)
			return f, err
		},
	}, nil
}
