package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// fresh is where in the workshop the new directory is filled, and where the old one
// is after the exchange. A workshop is the folder .NAME.next beside the place NAME.
const fresh = "directory"

// next is the name, beside the directory, of the workshop.
func (p *Place) next() string { return "." + p.base() + ".next" }

func (p *Place) workshop() string { return filepath.Join(p.parent.Name(), p.next()) }

// beside is the directory in the workshop.
func (p *Place) beside() string { return filepath.Join(p.workshop(), fresh) }

// open makes the workshop.
func (p *Place) open() (*durable.Dir, error) {
	if err := p.parent.Mkdir(p.next(), durable.Perm(0o700)); err != nil {
		return nil, err
	}
	if err := writeMark(p.workshop()); err != nil {
		return nil, err
	}
	return durable.OpenDir(p.workshop())
}

// Check holds that the directory can be replaced as far as can be told before: what
// has the name of the workshop is one, so that Begin may remove it, and nothing is
// mounted in either.
func (p *Place) Check() error {
	if _, _, err := p.left(); err != nil {
		return err
	}
	return errors.Join(noMounts(p.workshop()), noMounts(p.Path))
}

// left reports whether there is a workshop, and what is in it; what has its name and
// is none is refused.
func (p *Place) left() (there bool, names []string, err error) {
	fi, err := os.Lstat(p.workshop())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	if !fi.IsDir() {
		return false, nil, stranger(p.workshop())
	}
	if _, names, err = marked(p.workshop()); err != nil {
		return false, nil, err
	}
	for _, name := range names {
		if name != fresh && name != durable.TempName(fresh) {
			return false, nil, stranger(p.workshop())
		}
	}
	return true, names, nil
}

// sweep removes the workshop with all that is in it.
func (p *Place) sweep() error {
	there, names, err := p.left()
	if err != nil || !there {
		return err
	}
	shop, err := openFolder(p.workshop())
	if err != nil {
		return err
	}
	defer shop.Close()
	if err := empty(shop, names); err != nil {
		return err
	}
	return p.parent.Rmdir(p.next())
}
