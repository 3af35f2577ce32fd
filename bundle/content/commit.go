package content

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// commit makes whole parts the blobs they are, durably: first the content of all,
// then their names, then the directory, once. Each stays locked until it has
// its name. A kill in between leaves some of them blobs, the others to be swept.
//
// The staging directory is not synced: an old name that a power cut brings back
// is nobody's part, and swept.
func (s *Store) commit(parts ...*part) error {
	for _, p := range parts {
		// All are on their way before the first is waited for, so that one
		// commit of the journal covers most of them.
		_ = unix.SyncFileRange(int(p.file.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
	}
	for _, p := range parts {
		err := p.file.Chmod(0o600)
		if err == nil {
			err = p.file.Sync()
		}
		if err != nil {
			return fmt.Errorf("cannot store blob %s: %w", p.digest, err)
		}
	}
	for _, p := range parts {
		if err := unix.Rename(p.path, s.blob(p.digest)); err != nil {
			return fmt.Errorf("cannot store blob %s: %w", p.digest, &fs.PathError{Op: "rename", Path: p.path, Err: err})
		}
		p.path = ""
	}
	if err := durable.SyncDir(filepath.Join(s.dir, blobsDir)); err != nil {
		return fmt.Errorf("cannot store blobs: %w", err)
	}
	for _, p := range parts {
		p.abort()
	}
	return nil
}
