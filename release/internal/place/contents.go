package place

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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
