// Package service is the control plane as one process: it opens the state,
// listens, answers nodes and the person who runs it, and stops.
//
// It runs as any user and writes nothing outside its state directory. The lock
// on the state says that it is alone; the socket is made only under that lock.
// It may be killed at any instant: what was acknowledged is in the state, and
// the next start needs nothing repaired. A mesh is founded once: where one was,
// and its state is gone, the control plane refuses to start. Content that nothing
// in the state names is thrown away at the start, and when something leaves it.
package service

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/address"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/config"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// Run serves until ctx ends, then drains and returns nil.
func Run(ctx context.Context, l layout.Layout, c clock.Clock, log *slog.Logger) error {
	frugal(log)
	cfg, err := config.Read(l.ControllerConfig())
	if err != nil {
		return err
	}
	if err := stateDir(l.ControllerState()); err != nil {
		return err
	}
	store, mesh, authority, err := open(l, c)
	if err != nil {
		return err
	}
	defer store.Close()
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	blobs, err := content.Open(l.ControllerContent())
	if err != nil {
		return err
	}
	listeners, served, err := address.Listen(cfg.Listen)
	if err != nil {
		return err
	}
	office := &admission.Office{Store: store, Authority: authority, Clock: c, Addresses: served.Find}
	nodes := wire.New(office, blobs, log)
	collector := collector(blobs, store, log)
	desk := &admin.Desk{Office: office, Content: blobs, Collector: collector, Layout: l, Wire: nodes, Served: served, Log: log,
		Self: admin.Self(l, executable, profile.Collect(ctx, l).MachineID)}
	local, err := door.Listen(l.ControllerSocket(), door.OwnerOnly)
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
		return err
	}
	answers := door.Server{Handler: desk.Handler(), Grace: 5 * time.Second, Log: log}
	log.Info("control plane serves", "version", version.Running(), "mesh", mesh.ID, "epoch", mesh.Epoch, "listen", served.String())
	collector.Due() // what a kill left
	err = all(ctx,
		func(ctx context.Context) error { return nodes.Serve(ctx, listeners...) },
		func(ctx context.Context) error { return answers.Serve(ctx, local) },
		func(ctx context.Context) error { collector.Run(ctx); return nil })
	if err == nil {
		log.Info("control plane has stopped")
	}
	return err
}

// stateDir makes the directory if it is not there.
func stateDir(path string) error {
	if err := durable.MkdirAll(path, 0o700); err != nil {
		return fault.Failedf("cannot make the state directory: %w", err).
			Hint("make %q, owned by the user the control plane runs as, mode 0700", path)
	}
	fi, err := os.Stat(path)
	if err != nil {
		return fault.Failedf("cannot use the state directory: %w", err)
	}
	if fi.Mode().Perm()&0o022 != 0 {
		return fault.Refusedf("cannot use the state directory %q: others may write in it (mode %04o)", path, fi.Mode().Perm()).
			Hint("run `chmod 0700 %s`", fault.Word(path))
	}
	return nil
}

// all runs what it is given until ctx ends or one fails, and waits for all.
func all(ctx context.Context, fs ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, len(fs))
	for i, f := range fs {
		wg.Go(func() {
			defer cancel()
			errs[i] = f(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
