package process

import (
	"context"
	"path/filepath"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// detached is the Supervisor where there is no service manager: the host
// starts the shim and lets it go. After a reboot it is the host's first pass
// that starts it again, and the next pass when somebody killed it.
type detached struct{ layout layout.Layout }

// Detached returns the supervisor that needs no service manager.
func Detached(l layout.Layout) Supervisor { return detached{l} }

// Look implements Supervisor: nothing but the shim itself is needed.
func (d detached) Look(string) (Place, error) { return Place{}, nil }

// Ensure implements Supervisor.
func (d detached) Ensure(context.Context, string) error { return nil }

// Start implements Supervisor. The shim puts itself into a session of its own
// and inherits nothing; of two, the second ends at once.
func (d detached) Start(ctx context.Context, name string) error {
	args := []string{"shim", "--detach"}
	if !d.layout.IsMachine() {
		args = append(args, "--root", d.layout.Root)
	}
	_, err := child.Run(ctx, child.Command{
		Path:    d.layout.Launcher(),
		Args:    append(args, name),
		Dir:     "/",
		Timeout: 10 * time.Second,
	})
	return err
}

// Stop implements Supervisor.
func (d detached) Stop(ctx context.Context, name string) error {
	return endShim(ctx, filepath.Join(d.layout.Processes(), name))
}

// Forget implements Supervisor.
func (d detached) Forget(context.Context, string) error { return nil }

// Restore implements Supervisor: it never replaced anything.
func (d detached) Restore(context.Context, string, Unit) error { return nil }
