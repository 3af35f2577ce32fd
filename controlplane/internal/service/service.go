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
	"net"
	"os"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/address"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/config"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/provider"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/repository"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// Run serves until ctx ends, then drains and returns nil. It begins anew when it is
// asked to take up a restore: its process stays.
func Run(ctx context.Context, l layout.Layout, c clock.Clock, log *slog.Logger) error {
	frugal(log)
	for {
		inner, end := context.WithCancelCause(ctx)
		err := serve(inner, l, c, log, func() { end(errReopen) })
		reopen := errors.Is(context.Cause(inner), errReopen)
		end(nil)
		if err != nil || !reopen || ctx.Err() != nil {
			return err
		}
	}
}

// errReopen is why a control plane ends that begins anew.
var errReopen = errors.New("the state is opened anew")

func serve(ctx context.Context, l layout.Layout, c clock.Clock, log *slog.Logger, reopen func()) error {
	cfg, err := config.Read(l.ControllerConfig())
	if err != nil {
		return err
	}
	if err := stateDir(l.ControllerState()); err != nil {
		return err
	}
	store, mesh, authority, err := takeUp(l, c, log)
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
	repositoryListeners, repositoryServed, err := listenRepository(cfg)
	if err != nil {
		closeAll(listeners)
		return err
	}
	grants := provider.NewBook(store, c, log)
	office := &admission.Office{Store: store, Authority: authority, Clock: c, Addresses: served.Find, Policy: cfg.Admission, Grants: grants}
	nodes := wire.New(office, blobs, log)
	office.Linked = nodes.Links.Connected
	grants.Register(nodes.Downloads)
	if err := grants.Complete(); err != nil {
		closeAll(listeners)
		closeAll(repositoryListeners)
		return err
	}
	packages := repository.New(store, blobs, l.ControllerSeed(), func() (*trust.Policy, error) { return admin.Trusted(l) }, log)
	collector := collector(blobs, store, log)
	desk := &admin.Desk{Office: office, Content: blobs, Collector: collector, Layout: l, Wire: nodes, Served: served, Log: log, Reopen: reopen,
		Repository: packages, RepositoryServed: repositoryServed, Self: admin.Self(l, executable, profile.Collect(ctx, l).MachineID)}
	local, err := door.Listen(l.ControllerSocket(), door.OwnerOnly)
	if err != nil {
		closeAll(listeners)
		closeAll(repositoryListeners)
		return err
	}
	answers := door.Server{Handler: desk.Handler(), Grace: 5 * time.Second, Log: log}
	log.Info("control plane serves", "version", version.Running(), "mesh", mesh.ID, "epoch", mesh.Epoch, "listen", served.String())
	collector.Due() // what a kill left
	works := []func(context.Context) error{
		func(ctx context.Context) error { return nodes.Serve(ctx, listeners...) },
		func(ctx context.Context) error { return answers.Serve(ctx, local) },
		func(ctx context.Context) error { collector.Run(ctx); return nil },
		func(ctx context.Context) error { grants.Run(ctx); return nil },
	}
	if len(repositoryListeners) > 0 {
		works = append(works, func(ctx context.Context) error { return packages.Serve(ctx, repositoryListeners...) })
	}
	err = all(ctx, works...)
	if err == nil {
		log.Info("control plane has stopped")
	}
	return err
}

// listenRepository opens what the packages are served on, if anything.
func listenRepository(cfg config.Config) ([]net.Listener, address.Served, error) {
	listeners, served, err := address.Listen(cfg.RepositoryListen)
	if err != nil {
		return nil, nil, fault.Failedf("cannot serve new machines: %w", err).
			Hint("end what has the port, or set repository_listen in controller.toml")
	}
	return listeners, served, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
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
