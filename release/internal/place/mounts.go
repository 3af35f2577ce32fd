package place

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// noMounts refuses a directory that has a mount point below it. One that is not
// there has none.
func noMounts(dir *durable.Dir, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return walk(dir, nil)
}

// statx looks at name in d, or with "" at d.
func statx(d *durable.Dir, name string, st *unix.Statx_t) error {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	if err := unix.Statx(d.FD(), name, flags, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, st); err != nil {
		return &fs.PathError{Op: "statx", Path: filepath.Join(d.Name(), name), Err: err}
	}
	return nil
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
