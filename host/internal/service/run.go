package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/nox-mesh/nox-mesh/host/internal/launcher"
	"github.com/nox-mesh/nox-mesh/host/internal/loop"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// beat is how the loop shows that it lives.
type beat struct {
	every time.Duration
	alive func()
}

// Run is the service: until ctx ends (SIGTERM) it reconciles, holds the link
// and answers on the socket. It tells systemd when it is ready (the store is
// open, the socket answers; recovery is part of the first pass) and feeds its
// watchdog from the loop.
func Run(ctx context.Context, cfg Config) error {
	s, err := openFirst(ctx, cfg)
	if err != nil {
		return fmt.Errorf("cannot start: %w", err)
	}
	defer s.Close()
	s.served = true
	s.watchSelf()
	// The directory is the host's alone; the socket in it answers root only.
	if err := durable.MkdirAll(filepath.Dir(cfg.Layout.HostSocket()), 0o755); err != nil {
		return fmt.Errorf("cannot start: %w", err)
	}
	listener, err := door.Listen(cfg.Layout.HostSocket(), door.OwnerOnly)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	serving, stopServing := context.WithCancel(ctx)
	defer func() { stopServing(); <-served }()
	// Who waits for a pass is told that it was interrupted.
	answers := door.Server{Handler: s.handler(), Grace: 2 * time.Second, Log: s.Log}
	go func() { served <- answers.Serve(serving, listener); close(served) }()

	b := beat{alive: func() { _, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog) }}
	if every, err := daemon.SdWatchdogEnabled(false); err == nil && every > 0 {
		b.every = every / 3
	}
	s.start(b)
	s.collectFirst()
	s.hold()
	s.heedClock()
	s.loop.Trigger(ctx, loop.TriggerStart)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	// The journal restarts, and who read our log is gone: a write then fails, and
	// would end a Go program that asks for no SIGPIPE (os/signal). It is not ignored,
	// which every program that is run from here would inherit.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
	s.Log.Info("mesh-host runs", "version", version.Running(), "socket", cfg.Layout.HostSocket())
	trial := probation{}
	lasted := time.NewTimer(launcher.Probation)
	defer lasted.Stop()
	for {
		select {
		case <-hup:
			s.reload()
		case <-lasted.C:
			trial.lasted = true
		case <-s.passed:
			trial.passed = true
		case <-s.self.replaced:
			// Zero: the supervisor starts the new one, and backs off from nothing.
			return nil
		case err := <-served:
			s.stoppedByRequest(ctx)
			return err
		}
		if trial.due() {
			trial.over = s.prove()
		}
	}
}

// heedClock begins to look for jumps of the clock; where none can be seen, the
// timer has to do.
func (s *Service) heedClock() {
	jumps, err := clock.WatchJumps()
	if err != nil {
		s.Log.Warn("when the clock is set is not noticed", "cause", err)
		return
	}
	s.running.Go(func() {
		defer jumps.Close()
		s.loop.HeedClock(s.ctx, jumps, s.Log)
	})
}

// commandTime is how long the service waits at start for a command that holds
// the store for the time of one verb.
const commandTime = 20 * time.Second

// openFirst opens the store for years. Another service that holds it is an
// error at once; a command that does is waited for.
func openFirst(ctx context.Context, cfg Config) (*Service, error) {
	other := asker(cfg)
	deadline, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	for {
		s, err := Open(ctx, cfg)
		if !errors.Is(err, store.ErrLocked) {
			return s, err
		}
		if other.Greet(deadline) == nil {
			return nil, fault.Failedf("another mesh-host runs and answers on %q", cfg.Layout.HostSocket()).Hint("one host runs on a machine: ask it with mesh-host status")
		}
		select {
		case <-deadline.Done():
			return nil, fault.Failedf("%w %q", err, cfg.Layout.HostStore()).Hint("wait for the command that does, or end it")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// reload reads the configuration again. One that cannot be read changes
// nothing.
func (s *Service) reload() {
	settings, err := ReadSettings(s.Layout.HostConfig())
	if err != nil {
		s.Log.Error("configuration is not read again", "cause", err)
	}
	s.mu.Lock()
	if s.unread = err; err == nil {
		s.settings = settings
	}
	s.mu.Unlock()
	if err != nil {
		return
	}
	s.loop.SetInterval(settings.ReconcileInterval)
	s.Log.Info("configuration is read again", "reconcile_interval", settings.ReconcileInterval)
}
