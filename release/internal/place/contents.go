package place

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// contents takes down what is in a directory: of each name what it is, its size and
// when it was last written. Not when its inode changed: another link does that.
func contents(dir *durable.Dir) (map[string]string, error) {
	all := map[string]string{}
	err := walk(dir, func(d *durable.Dir, name string, st *unix.Statx_t) error {
		path := filepath.Join(d.Name(), name)[len(dir.Name()):]
		all[path] = fmt.Sprint(st.Ino, st.Mode&unix.S_IFMT, st.Size, st.Mtime.Sec, st.Mtime.Nsec)
		return nil
	})
	return all, err
}
