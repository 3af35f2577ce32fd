package place

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// fresh is where in the workshop the new directory is filled, and where the old one
// is after the exchange. A workshop is the folder .NAME.next beside the place NAME.
const fresh = "directory"

// next is the name, beside the directory, of the workshop.
func (p *Place) next() string { return "." + p.base() + ".next" }

// open makes the workshop.
func (p *Place) open() (*durable.Dir, error) {
	if err := p.parent.Mkdir(p.next(), durable.Perm(0o700)); err != nil {
		return nil, err
	}
	shop, err := openFolder(p.parent, p.next())
	if err != nil {
		return nil, err
	}
	// What is in one of somebody else's could be swapped.
	var st unix.Stat_t
	if err = unix.Fstat(shop.FD(), &st); err == nil && st.Uid != uint32(os.Geteuid()) {
		err = stranger(shop.Name())
	}
	if err == nil {
		err = writeMark(shop)
	}
	if err != nil {
		_ = shop.Close()
		return nil, err
	}
	return shop, nil
}

// Check holds that the directory can be replaced as far as can be told before: what
// has the name of the workshop is one, so that Begin may remove it, and nothing is
// mounted in either.
func (p *Place) Check() error {
	shop, err := p.left()
	if err == nil && shop != nil {
		err = noMounts(shop, nil)
	}
	return errors.Join(err, noMounts(p.Dir()))
}

// left opens the workshop that is there, or returns nil; what has its name and is
// none is refused.
func (p *Place) left() (*durable.Dir, error) {
	shop, err := openFolder(p.parent, p.next())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, names, err := marked(shop)
	for _, name := range names {
		if name != fresh && name != durable.TempName(fresh) {
			err = stranger(shop.Name())
		}
	}
	if err != nil {
		_ = shop.Close()
		return nil, err
	}
	return shop, nil
}

// sweep removes the workshop that a kill left.
func (p *Place) sweep() error {
	shop, err := p.left()
	if err != nil || shop == nil {
		return err
	}
	defer shop.Close()
	return p.clear(shop)
}

// clear removes the workshop with all that is in it: what is open, whatever has its
// name by now.
func (p *Place) clear(shop *durable.Dir) error {
	_, names, err := marked(shop)
	if err != nil {
		return err
	}
	if err := empty(shop, names); err != nil {
		return err
	}
	return p.parent.Rmdir(p.next())
}
