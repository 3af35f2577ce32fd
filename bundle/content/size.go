package content

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Size is how many blobs the store holds, and the sum of their sizes in bytes.
// Nothing is read but the directory.
func (s *Store) Size() (blobs int, bytes int64, err error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, blobsDir))
	if err != nil {
		return 0, 0, fmt.Errorf("cannot look at content store: %w", err)
	}
	for _, e := range entries {
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was collected meanwhile
		}
		if err != nil {
			return blobs, bytes, fmt.Errorf("cannot look at content store: %w", err)
		}
		if fi.Mode().IsRegular() {
			blobs, bytes = blobs+1, bytes+fi.Size()
		}
	}
	return blobs, bytes, nil
}
