package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A workshop is the folder .NAME.next beside the place NAME. Its mark is written
// first and removed last, both synced, so that whatever else is in it can be told
// from a stranger's folder at any instant.
const (
	// fresh is where the new directory is filled, and where the old one is after
	// the exchange.
	fresh    = "directory"
	mark     = "MESH-RELEASE"
	markText = "mesh-release fills a directory here that takes the place of the one beside it.\n" +
		"What is in this folder is removed when it runs again.\n"
)

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
	if err := durable.WriteFile(filepath.Join(p.workshop(), mark), []byte(markText), 0o600); err != nil {
		return nil, err
	}
	return durable.OpenDir(p.workshop())
}

// CheckBeside holds that what has the name of the workshop is one, so that Begin
// may remove it.
func (p *Place) CheckBeside() error {
	_, err := p.left()
	return err
}

// left reports whether there is a workshop; what has its name and is none is
// refused.
func (p *Place) left() (bool, error) {
	stranger := fault.Refusedf("%q is in the way: mesh-release did not make it", p.workshop()).
		Hint("look at what it holds, and move it elsewhere")
	fi, err := os.Lstat(p.workshop())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !fi.IsDir() {
		return false, stranger
	}
	entries, err := os.ReadDir(p.workshop())
	if err != nil {
		return false, err
	}
	marked, holds := false, false
	for _, e := range entries {
		switch e.Name() {
		case mark:
			if marked = p.isMark(e); !marked {
				return false, stranger
			}
		case durable.TempName(mark): // a kill while it was marked
		case fresh, durable.TempName(fresh):
			holds = true
		default:
			return false, stranger
		}
	}
	if holds && !marked {
		return false, stranger
	}
	return true, nil
}

func (p *Place) isMark(e fs.DirEntry) bool {
	fi, err := e.Info()
	if err != nil || !fi.Mode().IsRegular() || fi.Size() != int64(len(markText)) {
		return false
	}
	b, err := os.ReadFile(filepath.Join(p.workshop(), mark))
	return err == nil && string(b) == markText
}

// sweep removes the workshop with all that is in it.
func (p *Place) sweep() error {
	if there, err := p.left(); err != nil || !there {
		return err
	}
	shop, err := durable.OpenDir(p.workshop())
	if err != nil {
		return err
	}
	defer shop.Close()
	for _, name := range []string{fresh, durable.TempName(fresh)} {
		if err := os.RemoveAll(filepath.Join(p.workshop(), name)); err != nil {
			return err
		}
	}
	// A power cut must not bring them back without the mark.
	if err := shop.Sync(); err != nil {
		return err
	}
	if err := errors.Join(shop.Sweep(mark), shop.Remove(mark)); err != nil {
		return fmt.Errorf("cannot clear %q: %w", p.workshop(), err)
	}
	return p.parent.Rmdir(p.next())
}
