package place

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// contents takes down what is in a directory: of each name what it is, its size and
// when it was last written. A directory that is not there has none.
func contents(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return nil
		}
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[path[len(dir):]] = fmt.Sprint(info.Mode().Type(), info.Size(), info.ModTime().UnixNano())
		return nil
	})
	return all, err
}

// unchanged holds, after the exchange, that the old directory is what Begin saw. If
// it is not, somebody wrote there meanwhile: it is put back.
func (p *Place) unchanged() error {
	now, err := contents(p.beside())
	if err == nil && maps.Equal(p.seen, now) {
		return nil
	}
	if back := unix.Renameat2(p.parent.FD(), p.next(), p.parent.FD(), p.base(), unix.RENAME_EXCHANGE); back != nil {
		return fmt.Errorf("cannot put %q back, which changed meanwhile and is now %q: %w", p.Path, p.beside(), back)
	}
	if err := errors.Join(err, p.parent.Sync(), p.sweep()); err != nil {
		return err
	}
	return fault.Failedf("somebody changed %q meanwhile; it is as they left it", p.Path).Hint("run it again")
}
