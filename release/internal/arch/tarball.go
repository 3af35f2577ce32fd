package arch

import (
	"archive/tar"
	"context"
	"io"

	"github.com/klauspost/compress/zstd"
)

// pack writes the package to w. It returns what it wrote, for whoever reads it
// back.
func pack(ctx context.Context, w io.Writer, p Package) (*plan, error) {
	pl, err := newPlan(ctx, p)
	if err != nil {
		return nil, err
	}
	return pl, pl.write(ctx, w)
}

func (p *plan) write(ctx context.Context, w io.Writer) error {
	// One goroutine, one frame: with more the frame depends on their number.
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
		zstd.WithWindowSize(8<<20), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for i := range p.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.writeEntry(t, &p.entries[i]); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func (p *plan) writeEntry(t *tar.Writer, e *entry) error {
	h := &tar.Header{
		// GNU, whose long names are bytes. In PAX they are UTF-8, and libarchive
		// does not extract them where the locale is C, as it is for whoever calls
		// pacman with LC_ALL=C.
		Format: tar.FormatGNU, Typeflag: e.kind, Name: e.path, Linkname: e.link, Mode: e.mode, Size: e.size,
		ModTime: p.time, Uname: e.owner, Gname: e.group, Uid: number(e.owner), Gid: number(e.group),
	}
	if e.kind == tar.TypeDir {
		h.Name += "/"
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	if e.source != "" {
		return e.copySource(t)
	}
	_, err := t.Write(e.content)
	return err
}
