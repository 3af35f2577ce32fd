package pack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

// CheckOut holds that a release can take the place of what is in out, before
// anything is compiled for it.
func CheckOut(out string) error {
	p, err := place.Open(out, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer p.Close()
		err = p.NotWhereWeAre()
	}
	if err == nil {
		err = ours(p.Path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", out, err)
	}
	return nil
}

// replace fills a new directory and puts it in the place of out.
func replace(ctx context.Context, out string, fill func(dir string) error) error {
	p, err := place.Open(out, true)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.NotWhereWeAre(); err != nil {
		return err
	}
	if err := place.Lock(ctx, p); err != nil {
		return err
	}
	if err := p.Begin(); err != nil {
		return err
	}
	if err := ours(p.Path); err != nil {
		return err
	}
	return p.Replace(func(next *durable.Dir) error { return fill(next.Name()) })
}

// ours holds that what is in a directory is a release and nothing else: it will
// be removed. Its signatures do not matter for that.
func ours(dir string) error {
	fi, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return fault.Failedf("it is there, and no directory").Hint("give another --out")
	}
	known, err := listed(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && known[name] != kindOf(d) {
			err = fault.Refusedf("%q is in it, and no file of a release", name).
				Hint("move it elsewhere, or give another --out")
		}
		return err
	})
}

// listed are the files of the release in dir, and their folders; none when there is none.
func listed(dir string) (map[string]kind, error) {
	path := filepath.Join(dir, check.ManifestName)
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > check.MaxManifest {
		return nil, fault.Refusedf("%q is no list of a release", check.ManifestName).Hint("move it elsewhere, or give another --out")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := check.ParseManifest(b)
	if err != nil {
		return nil, fault.Refusedf("%q: %w", check.ManifestName, err).Hint("move it elsewhere, or give another --out")
	}
	known := map[string]kind{}
	for _, name := range m.Names() {
		known[name] = file
		for above := filepath.Dir(name); above != "."; above = filepath.Dir(above) {
			known[above] = folder
		}
	}
	return known, nil
}

// A kind is what a name in a directory is; "" is nothing of a release.
type kind string

const (
	file   kind = "file"
	folder kind = "folder"
)

func kindOf(d fs.DirEntry) kind {
	if d.IsDir() {
		return folder
	}
	return file
}
