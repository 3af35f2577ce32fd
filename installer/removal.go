package installer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"golang.org/x/sys/unix"
)

// A removal takes things away that an install laid down, and says which. A dry
// one only says it.
type removal struct {
	layout  layout.Layout
	out     io.Writer
	dry     bool
	rec     record
	summary UninstallSummary
}

// socket removes what a host that ran, or was killed, left in /run.
func (u *removal) socket() error {
	path := u.layout.HostSocket()
	if u.dry {
		return nil
	}
	if err := durable.Remove(path); err != nil {
		return err
	}
	return rmdir(filepath.Dir(path))
}

// file removes one file if it is still ours.
func (u *removal) file(f laid) error {
	path := u.layout.Path(f.Path)
	if err := u.sweep(path); err != nil {
		return err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	have, _, err := look(path)
	if err != nil {
		return err
	}
	if !slices.Contains(f.SHA256, have) && !u.isHost(path, have) {
		u.kept(path, "it is not what was installed")
		return nil
	}
	if !u.dry {
		if err := durable.Remove(path); err != nil {
			return err
		}
	}
	u.removed(path)
	return nil
}

// sweep removes what a killed install may have left beside the file at path.
func (u *removal) sweep(path string) error {
	if u.dry {
		return nil
	}
	dir, base := filepath.Split(path)
	names := []string{durable.TempName(base)}
	if base == memberBinary {
		names = append(names, trialName, durable.TempName(trialName))
	}
	for _, name := range names {
		if err := durable.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// isHost recognises the host's binary after the host replaced itself: it is the
// proven copy, the program that is being run to take it away, or the host that
// runs.
func (u *removal) isHost(path, sum string) bool {
	if filepath.Base(path) != memberBinary || sum == "" {
		return false
	}
	if proven, _, err := look(u.layout.Launcher()); err == nil && proven == sum {
		return true
	}
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	programs := []string{"/proc/self/exe"}
	if pid, runs, err := runningHost(u.layout); err == nil && runs && pid != 0 {
		programs = append(programs, fmt.Sprintf("/proc/%d/exe", pid))
	}
	return slices.ContainsFunc(programs, func(p string) bool {
		fi, err := os.Stat(p)
		return err == nil && os.SameFile(fi, there)
	})
}

// tree removes a part of the host's own state whole, but for what a person
// mounted. It is beside the durable door: nothing is lost when a power cut brings
// a part of it back, and the record still says that it is to go.
func (u *removal) tree(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !u.dry {
		// EBUSY: it is a mount point, which is empty by now.
		if err := os.RemoveAll(path); err != nil && !errors.Is(err, unix.EBUSY) {
			return err
		}
		if err := durable.SyncDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	u.removed(path)
	return nil
}

// directories removes the empty ones of the directories that an install made and
// that are to go, deepest first.
func (u *removal) directories(goes func(path string) bool) error {
	for _, dir := range slices.Backward(u.rec.Directories) {
		path := u.layout.Path(dir)
		if u.dry || !goes(path) {
			continue
		}
		if err := rmdir(path); err != nil {
			return err
		}
	}
	return nil
}

// forget removes the record.
func (u *removal) forget() error {
	path := u.layout.InstallManifest()
	if err := u.sweep(path); err != nil {
		return err
	}
	if !u.dry {
		if err := durable.Remove(path); err != nil {
			return err
		}
	}
	u.removed(path)
	return nil
}

// isAbove reports whether dir is a parent of path.
func isAbove(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel) && rel != "."
}

// rmdir removes a directory if it is empty, and what a killed install made of it
// before it had its name. What else is in it is not ours, and no error.
func rmdir(path string) error {
	d, err := durable.OpenDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.SweepDead(); err != nil {
		return err
	}
	err = d.Rmdir(filepath.Base(path))
	for _, harmless := range []error{unix.ENOTEMPTY, unix.EEXIST, unix.ENOENT, unix.ENOTDIR, unix.EBUSY} {
		if errors.Is(err, harmless) {
			return nil
		}
	}
	return err
}

// rmdirOnly removes a directory that is there and empty, and reports whether it
// was.
func rmdirOnly(path string) bool {
	_, before := os.Lstat(path)
	if rmdir(path) != nil || before != nil {
		return false
	}
	_, after := os.Lstat(path)
	return errors.Is(after, fs.ErrNotExist)
}

func (u *removal) removed(path string) {
	u.summary.Removed = append(u.summary.Removed, u.machine(path))
	if !u.dry {
		fmt.Fprintf(u.out, "removed %s\n", u.machine(path))
	}
}

func (u *removal) kept(path, why string) {
	u.summary.Kept = append(u.summary.Kept, u.machine(path))
	if !u.dry {
		fmt.Fprintf(u.out, "kept %s: %s\n", u.machine(path), why)
	}
}

func (u *removal) machine(path string) string {
	return filepath.Join("/", path[len(u.layout.Root):])
}
