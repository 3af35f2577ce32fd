package process

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Supervisor keeps the shims up. It knows names, not processes: what a shim
// runs is in its folder. One conformance test holds both implementations to
// this:
//
//   - every method may be called again after it returned, or was killed, and
//     then does what was left to do;
//   - a shim that is up is never touched but by Stop;
//   - only what Ensure made is ever changed.
type Supervisor interface {
	// Look says how what keeps the shim up differs from what Ensure makes.
	// It only reads files.
	Look(name string) (Place, error)
	// Ensure makes what keeps the shim up, also after a reboot; it starts
	// nothing. What is Foreign is replaced: the caller has decided.
	Ensure(ctx context.Context, name string) error
	// Start starts the shim; one that is up is left alone.
	Start(ctx context.Context, name string) error
	// Stop ends the shim and with it the process; when it returns they are
	// gone. None that is up is no error.
	Stop(ctx context.Context, name string) error
	// Forget takes away what Ensure made. The shim is stopped.
	Forget(ctx context.Context, name string) error
	// Restore puts back a foreign unit that Ensure replaced.
	Restore(ctx context.Context, name string, unit Unit) error
}

// A Place is what a Supervisor sees under a name.
type Place struct {
	Exists bool
	// Foreign is what is there, when it is not Ensure's.
	Foreign *Unit
	// Differences are for people.
	Differences []string
}

// Choose picks the supervisor for a machine, and says why.
func Choose(l layout.Layout) (s Supervisor, reason string) {
	if !l.IsMachine() {
		return Detached(l), "the root is a directory: no service manager is in charge of it"
	}
	// As sd_booted(3) does.
	fi, err := os.Lstat("/run/systemd/system")
	if err != nil || !fi.IsDir() {
		return Detached(l), "systemd does not run here"
	}
	return Systemd(l), "systemd runs here"
}

// endShim tells the shim over dir to end, and waits until it has.
func endShim(ctx context.Context, dir string) error {
	for {
		shim, err := supervise.Shim(dir)
		if shim == nil || err != nil {
			return err
		}
		err = errors.Join(shim.Signal(syscall.SIGTERM), shim.Wait(ctx))
		shim.Close()
		if err != nil {
			return err
		}
	}
}
