package command

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// become makes this process one of the user whose state directory it is, for good:
// root writes nothing in a directory where another user could lead it elsewhere, and
// what is written is the control plane's from the beginning. check says that nothing
// is to be written.
func become(l layout.Layout, check bool) error {
	dir := l.ControllerState()
	fi, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && check:
		return nil
	case errors.Is(err, fs.ErrNotExist) && l.IsMachine():
		return fault.Refusedf("there is no control plane on this machine: %q is not there", dir).
			Hint("run `mesh-host bootstrap` with the bundle of the first node; then restore")
	case errors.Is(err, fs.ErrNotExist):
		return durable.MkdirAll(dir, 0o700)
	case err != nil:
		return err
	}
	st := fi.Sys().(*syscall.Stat_t)
	uid, gid := int(st.Uid), int(st.Gid)
	switch euid := os.Geteuid(); {
	case euid == uid:
		return nil
	case euid != 0:
		return fault.Failedf("the state is another user's").Hint("run it with sudo")
	}
	// All threads (Go does that for these), and groups first: afterwards nobody may.
	for _, set := range []func() error{
		func() error { return syscall.Setgroups([]int{gid}) },
		func() error { return syscall.Setresgid(gid, gid, gid) },
		func() error { return syscall.Setresuid(uid, uid, uid) },
	} {
		if err := set(); err != nil {
			return fault.Failedf("cannot become the user of the control plane: %w", err)
		}
	}
	return nil
}
