// Package service is the host at work: the store, the engine, the loop and the
// link put together, and the verbs a person asks.
//
// The same Service stands behind two doors. `mesh-host run` opens it for
// years: it holds the store's lock, reconciles on the loop's triggers, holds
// the link when the machine is a node, and answers on the host's socket. A
// command that finds nobody at the socket opens it for the time of one verb.
// Connect picks the door; a caller does not see which it was.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/loop"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/container"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/file"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/process"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/unit"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/link/client"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// Config is what a Service is made of.
type Config struct {
	Layout layout.Layout
	Clock  clock.Clock
	Log    *slog.Logger
}

// Service is the host at work.
type Service struct {
	Config
	store   *store.Store
	content *content.Store
	// collector throws away content that nobody needs any more.
	collector *content.Collector
	engine    *apply.Engine
	loop      *loop.Loop

	stop    context.CancelFunc
	ctx     context.Context // ends with Close
	running sync.WaitGroup

	// enrolling is held by the one enrolment there may be at a time; asking and
	// holding are what goes on after it.
	enrolling       sync.Mutex
	asking, holding task
	// tally is what is counted; it has its own lock.
	tally tally
	// admitting is held while a bundle is judged and what it says of trust is
	// recorded.
	admitting sync.Mutex

	mu       sync.Mutex
	settings Settings
	identity *client.Identity
	link     *client.Client
	last     *link.Report
	// refusal is why the newest declaration of the mesh was not taken, unread
	// why host.toml was not read again.
	// and unknown why the identity cannot be read.
	refusal, unread, unknown error
	// unrecorded is why the last pass that had something to say is not in the
	// history; the next one is then, whatever it finds.
	unrecorded error
	// broken is why the last pass could not be made, or not to its end.
	broken error
	// news is closed and made anew whenever something changed that somebody
	// may wait for: a pass ended, the link went up or down.
	news   chan struct{}
	outbox chan struct{}
	served bool
	// packages is the kind that the host's own package is of, processes that of
	// programs that may have failed here.
	packages  *packages.Kind
	processes *process.Kind
	self      self
	// refusals are new hosts that do not run here.
	refusals refusals
	// passed hears of each complete pass.
	passed chan struct{}
	// leavingNow: a node that was dismissed is leaving.
	leavingNow atomic.Bool
	// former is what was owned before the store was lost.
	former *former
	// recalled: what failed here was looked into.
	recalled sync.Once
	// other is the version that is installed, when another one runs.
	other string
}

// Open opens the store and everything around it. The error is store.ErrLocked
// when another host does so already.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	if err := cfg.Layout.Inside(cfg.Layout.HostConfig()); err != nil {
		return nil, fmt.Errorf("cannot work in %q: %w", cfg.Layout.Root, err)
	}
	settings, err := ReadSettings(cfg.Layout.HostConfig())
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(cfg.Layout.HostState(), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the host's state directory: %w", err)
	}
	st, err := store.Open(cfg.Layout.HostStore(), cfg.Clock, cfg.Log)
	if err != nil {
		return nil, err
	}
	s := &Service{Config: cfg, store: st, settings: settings, news: make(chan struct{}), outbox: make(chan struct{}, 1), passed: make(chan struct{}, 1)}
	s.self.replaced = make(chan struct{})
	s.former = formerAt(cfg.Layout.HostState())
	if err := s.assemble(); err != nil {
		st.Close()
		return nil, err
	}
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

func (s *Service) assemble() (err error) {
	if err := s.former.read(); err != nil {
		s.Log.Error("what this host owned before it lost its store cannot be read", "cause", err)
	}
	if s.content, err = content.Open(s.Layout.Content()); err != nil {
		return err
	}
	if s.identity, err = client.LoadIdentity(s.Layout.HostIdentity()); err != nil {
		// No reason to stop: what was declared last is held without a link.
		s.Log.Error("the identity cannot be read: this node holds what it was last told, without a link", "cause", err)
		s.identity, s.unknown = nil, err
	}
	s.packages = packages.New(packages.Config{Layout: s.Layout, Content: s.content, Clock: s.Clock, Failed: s.failedPackage})
	supervisor, why := process.Choose(s.Layout)
	s.Log.Debug("processes are kept up", "by", why)
	s.processes = process.New(process.Config{Layout: s.Layout, Supervisor: supervisor})
	s.engine = &apply.Engine{
		Store: s.store, Content: s, Layout: s.Layout, Clock: s.Clock, Log: s.Log, Mesh: s.mesh, Version: version.Running(),
		Formerly: s.former.has,
		Late:     func() { s.loop.Trigger(s.ctx, loop.TriggerLate) },
		// The kinds of resources: this map is the only list of them.
		Kinds: map[declaration.Type]resource.Kind{
			declaration.TypeFile:      file.New(file.Config{Layout: s.Layout, Content: s.content, Vet: s.vet, Failed: s.failedFile, Restored: s.processes.Restored}),
			declaration.TypeProcess:   s.processes,
			declaration.TypeUnit:      unit.New(unit.Config{Layout: s.Layout, Content: s.content, Records: s.store}),
			declaration.TypePackage:   s.packages,
			declaration.TypeContainer: container.New(container.Config{Layout: s.Layout, Content: s.content, Clock: s.Clock}),
		},
	}
	s.collector = s.content.Collector(s.collected, s.keep)
	s.loop = loop.New(s.settings.ReconcileInterval, s.pass)
	s.loop.After = s.leave
	reports, err := s.store.Reports()
	if len(reports) > 0 {
		s.last = &reports[0]
	}
	s.tally.remember(reports)
	return err
}

// start runs the loop until Close. A command collects when it closes (keep.go).
func (s *Service) start(beat beat) {
	s.tally.begun(s.Clock.Now(), beat.every)
	s.running.Go(func() { s.loop.Run(s.ctx, beat.every, func() { s.feed(beat) }) })
	if s.served {
		s.running.Go(s.weigh)
		s.running.Go(func() { s.collector.Run(s.ctx) })
	}
}

// feed feeds the watchdog, if everything still moves: a service whose lock nobody
// gives back answers nobody, and is to be started anew.
func (s *Service) feed(beat beat) {
	s.mu.Lock()
	s.tally.feeding(s.Clock.Now())
	s.mu.Unlock()
	beat.alive()
}

// Close ends the pass in hand, the link and the loop, and closes the store.
func (s *Service) Close() error {
	s.stop()
	s.running.Wait()
	s.collectLast()
	return s.store.Close()
}

// mesh is the mesh this machine is a node of, or "".
func (s *Service) mesh() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unknown != nil {
		// Still the node it was, for all that wants to declare something.
		if w, err := s.store.About(); err == nil && w != nil {
			return w.Mesh
		}
	}
	if s.identity == nil || s.identity.Stage != client.StageActive {
		return ""
	}
	return s.identity.Mesh
}

// changed wakes whoever waits for something to have changed.
func (s *Service) changed() {
	s.mu.Lock()
	close(s.news)
	s.news = make(chan struct{})
	s.mu.Unlock()
}

// await waits until ok says so, asking again after each change.
func (s *Service) await(ctx context.Context, ok func() bool) bool {
	for {
		s.mu.Lock()
		news := s.news
		s.mu.Unlock()
		if ok() {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
	}
}

// pass is what the loop runs.
func (s *Service) pass(ctx context.Context, trigger string) loop.Result {
	s.recalled.Do(func() { s.afterFailure(ctx) })
	began := s.Clock.Now()
	report, err := s.reconcile(ctx, trigger)
	ended := s.Clock.Now()
	if report != nil {
		s.tally.date(report, err == nil)
	}
	if errors.Is(err, context.Canceled) && report != nil {
		// What was done is in the history; the rest is for the next pass.
		return loop.Result{Err: errors.Join(err, s.keepPart(*report))}
	}
	s.mu.Lock()
	s.broken = err
	s.mu.Unlock()
	s.tally.passed(trigger, ended.Sub(began), ended, report, err)
	if err != nil {
		s.Log.Error("pass", "trigger", trigger, "cause", err)
		report = nil
	} else if report != nil {
		s.ownedAgain()
		s.sayInstalled(ctx, report)
		err = s.record(*report)
		s.leaveWhenEmpty(ctx)
	}
	if s.changed(); s.broken == nil {
		select {
		case s.passed <- struct{}{}:
		default:
		}
	}
	// Also when nothing could be recorded: the next version may be what helps.
	s.lookAtSelf()
	return loop.Result{Report: report, Err: err}
}

// record keeps the report of a pass, if there is news in it. What cannot be kept
// is in the log, each outcome in a line of its own, and the next report that can
// be is kept whatever it finds, also by the version that comes next.
func (s *Service) record(report link.Report) error {
	s.mu.Lock()
	before := s.unrecorded
	isNews := before != nil || newsIn(s.last, report)
	s.last = &report
	s.mu.Unlock()
	if !isNews {
		if s.collector.Err() != nil {
			s.collector.Due() // what kept it from being thrown away may be mended
		}
		return nil
	}
	err := s.store.AddReport(report, report.Mesh != "")
	s.mu.Lock()
	s.unrecorded = err
	s.mu.Unlock()
	if err != nil {
		if before == nil || before.Error() != err.Error() {
			s.Log.Error("what this pass found is not in the history, nor will the control plane hear of it until a later one is", "cause", err)
		}
		return err
	}
	select {
	case s.outbox <- struct{}{}:
	default:
	}
	if s.served {
		s.weigh()
	}
	s.collector.Due()
	return nil
}

// reconcile makes one pass. What it finds in the content store, or brings there,
// stays until what it was for is recorded.
func (s *Service) reconcile(ctx context.Context, trigger string) (*link.Report, error) {
	lease, err := s.content.Lease()
	if err != nil {
		// Nor can anybody collect: no reason not to look after the machine.
		s.Log.Error("the content store cannot be locked", "cause", err)
	} else {
		defer lease.Release()
	}
	return s.engine.Reconcile(ctx, trigger, strings.Contains(trigger, loop.TriggerPerson))
}

// keepPart keeps the report of a pass that was interrupted, if it did anything.
func (s *Service) keepPart(report link.Report) error {
	for _, r := range report.Resources {
		if r.Outcome.Changed() || !r.Outcome.Good() {
			report.Trigger += interruptedMark
			err := s.store.AddReport(report, report.Mesh != "")
			if err != nil {
				s.Log.Error("what this pass did before it was interrupted is not in the history", "cause", err)
			}
			return err
		}
	}
	return nil
}

// newsIn reports whether a report says anything the one before it did not: a
// pass that found everything as it was leaves no trace.
func newsIn(before *link.Report, now link.Report) bool {
	if before == nil || before.Declaration != now.Declaration || before.Mesh != now.Mesh || before.Epoch != now.Epoch ||
		before.Version != now.Version || before.Installed != now.Installed {
		return true
	}
	said := map[string]link.ResourceReport{}
	for _, r := range before.Resources {
		if !r.Outcome.Good() {
			said[r.Key] = link.ResourceReport{Key: r.Key, ID: r.ID, Outcome: r.Outcome, Error: r.Error}
		}
	}
	bad := 0
	for _, r := range now.Resources {
		switch {
		case r.Outcome == declaration.Unchanged:
		case r.Outcome.Good():
			return true
		default:
			bad++
			if said[r.Key] != (link.ResourceReport{Key: r.Key, ID: r.ID, Outcome: r.Outcome, Error: r.Error}) {
				return true
			}
		}
	}
	return bad != len(said)
}
