package place

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// noMounts refuses a directory that has a mount point below it: a rename takes it
// along, and whoever then removes the old directory removes what is mounted, which
// lies elsewhere. One that is not there has none.
func noMounts(dir string) error {
	var top unix.Statx_t
	err := statx(dir, &top)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "statx", Path: dir, Err: err}
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		var st unix.Statx_t
		if err := statx(path, &st); err != nil {
			return &fs.PathError{Op: "statx", Path: path, Err: err}
		}
		if isMount(&top, &st) {
			return fault.Refusedf("%q is a mount point: what is there belongs to somebody else", path).
				Hint("unmount it, or use another directory")
		}
		return nil
	})
}

func statx(path string, st *unix.Statx_t) error {
	return unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT,
		unix.STATX_TYPE|unix.STATX_MNT_ID, st)
}

// isMount reports whether something is mounted on what st is of, below top. A bind
// mount of the same file system has its device, so that the kernel is asked (Linux
// 5.8, statx(2)); an older one shows no more than the device. Of a file that is
// nothing: overlayfs says that of the layer.
func isMount(top, st *unix.Statx_t) bool {
	if st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	return st.Mode&unix.S_IFMT == unix.S_IFDIR && (st.Dev_major != top.Dev_major || st.Dev_minor != top.Dev_minor)
}

// remove removes what is called path with all that is in it, but nothing that is
// mounted there.
func remove(path string) error {
	if err := noMounts(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}
