// Package client is the node's side of the link: it enrols a machine (Enrol)
// and holds the link of a node (Client).
//
// What it promises. A machine becomes one node whatever is lost or killed on
// the way: key and enrolment id are durable before anything leaves, and a
// retry uses both again. The node's private key never leaves identity.json
// (0600), the token's secret never leaves the token. Nothing is said to
// anybody whose mesh root is not the pinned one. The link is tried for ever,
// with growing, random waits, and a control plane that fell silent is noticed
// within three heartbeats. At each session the control plane is told which session
// the last one was, so that it can tell this machine from a copy of it.
//
// What it does not. It applies nothing and orders nothing: a declaration is
// checked against its digest and handed on. It sets no clock, and no date
// makes it refuse.
//
// What survives a crash: the identity, at every stage, and with it the
// addresses. A candidate that a crash left is acknowledged by the next Enrol,
// or by the next session.
//
//	enrolling --answer--> candidate --ack--> active
package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const (
	minBackoff = 500 * time.Millisecond
	maxBackoff = 60 * time.Second
)

// ErrNoLink is returned by Content while the link is down.
var ErrNoLink = errors.New("no link to the control plane")

// A Handler is told what comes down the link. All calls come from one
// goroutine, in order; each must return soon (hand over, do not apply): while
// it runs nothing else is read.
type Handler interface {
	// Declaration brings what the node shall be; m.Document is always filled,
	// and is what m.Digest and m.Size say. An error is logged; the link stays.
	Declaration(ctx context.Context, m link.DeclarationMessage) error
	// LinkUp: a session stands.
	LinkUp()
	// LinkDown: the session that LinkUp announced has ended, for that reason.
	LinkDown(err error)
	// Revoked: the control plane took this node's credentials away. It is told
	// once, over restarts too, until a session stands again.
	Revoked(sentence string)
}

// An Outbox holds the reports that wait for a link, durably.
type Outbox interface {
	// Pending returns what is not sent yet, oldest first.
	Pending() ([]link.Report, error)
	// Sent takes a report out. One that is not there is no error.
	Sent(id string) error
	// Notify has a value when Pending, or the inventory, may be new (a channel
	// of size one is enough).
	Notify() <-chan struct{}
}

// Config is what a Client needs. A zero duration means the value of the wire.
type Config struct {
	// Path is the identity file. While Run runs, nobody else writes it.
	Path    string
	Handler Handler
	Outbox  Outbox
	// Inventory is asked at each connect and at each notice of the outbox; it
	// is sent when it changed.
	Inventory func() profile.Inventory
	// Profile is sent with it; nil sends none.
	Profile func() profile.Profile
	// Have is asked at each connect: what is in force of this mesh, nil for nothing.
	Have  func() *link.Position
	Clock clock.Clock
	Log   *slog.Logger

	// MinBackoff and MaxBackoff bound the ceiling of the wait between tries.
	MinBackoff, MaxBackoff time.Duration
	// Heartbeat is how often the control plane is to be heard of.
	Heartbeat time.Duration
}

// State is the link as `status` shows it.
type State struct {
	Connected bool `json:"connected"`
	// Since is when the session began, or when the last one ended.
	Since time.Time `json:"since,omitzero"`
	// Address is the one in use, or the last that was tried.
	Address string `json:"address,omitempty"`
	// Error is why the link is down.
	Error string `json:"error,omitempty"`
	// Revoked is the control plane's sentence, or empty.
	Revoked string `json:"revoked,omitempty"`
}

// A Client holds the link of one node.
type Client struct {
	cfg Config

	// renewed is when a certificate was last asked for, of the goroutine that reads.
	renewed time.Time

	mu      sync.Mutex
	state   State
	session *session
}

// New returns a Client; Run does everything.
func New(cfg Config) *Client {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&cfg.MinBackoff, minBackoff)
	def(&cfg.MaxBackoff, maxBackoff)
	def(&cfg.Heartbeat, link.HeartbeatInterval)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.System
	}
	if cfg.Have == nil {
		cfg.Have = func() *link.Position { return nil }
	}
	return &Client{cfg: cfg}
}

// State returns the link as it is now.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Content fetches a blob that one of the node's declarations names, over the
// session that stands; the error is ErrNoLink when none does. The bytes are
// not checked here: who stores them by their digest does. The reader ends with
// the session, and when nothing comes for a minute.
func (c *Client) Content(ctx context.Context, d digest.Digest) (io.ReadCloser, error) {
	s := c.standing()
	if s == nil {
		return nil, ErrNoLink
	}
	return s.content(ctx, d)
}

// standing is the session that stands, nil for none.
func (c *Client) standing() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// Run holds the link until ctx ends, and returns nil then. It returns an error
// at once when the machine has no identity.
func (c *Client) Run(ctx context.Context) error {
	id, err := LoadIdentity(c.cfg.Path)
	if err != nil {
		return err
	}
	if id == nil || id.Stage == StageEnrolling {
		return fault.Refusedf("cannot hold a link: this machine is not enrolled").Hint("run `mesh-host enrol -`")
	}
	c.mu.Lock()
	c.state.Revoked = id.Revoked
	c.mu.Unlock()
	b := backoff{min: c.cfg.MinBackoff, max: c.cfg.MaxBackoff}
	var best string
	logged := said{}
	for ctx.Err() == nil {
		var wait time.Duration
		for _, address := range id.order(best) {
			end := c.hold(ctx, id, address)
			if ctx.Err() != nil {
				return nil
			}
			if end.up {
				best, logged = address, said{}
			}
			if end.held {
				b.reset()
			}
			if !logged.again(address, end.err) {
				c.cfg.Log.Warn("the link is down", "address", address, "cause", end.err)
			}
			wait = c.wait(&b, end)
			if end.up || link.CodeOf(end.err) != "" && link.CodeOf(end.err) != link.PinMismatch {
				break // the control plane itself spoke
			}
		}
		if sleep(ctx, wait) != nil {
			return nil
		}
	}
	return nil
}

// ended is how a session ended.
type ended struct {
	// up: it stood. held: for long enough to count as a good one.
	up, held bool
	err      error
}

// errDrain: the control plane goes away and asks to come back within window.
type errDrain struct{ window time.Duration }

func (e *errDrain) Error() string {
	return fmt.Sprintf("the control plane is restarting, back within %s", e.window)
}

// wait is how long to stay away after a session ended so.
func (c *Client) wait(b *backoff, end ended) time.Duration {
	var drain *errDrain
	if errors.As(end.err, &drain) {
		return jitter(drain.window)
	}
	var revoked *errRevoked
	if errors.As(end.err, &revoked) {
		return b.max/2 + jitter(b.max/2)
	}
	if asked, ok := link.ParseRetry(link.RetryOf(end.err)); ok && link.CodeOf(end.err) == link.NodeUnknown {
		// A person is at it: the wait does not grow.
		b.reset()
		return asked + jitter(asked)
	}
	wait := b.next()
	if asked, ok := link.ParseRetry(link.RetryOf(end.err)); ok {
		wait += asked
	}
	return wait
}

// hold opens a session at address and holds it to its end.
func (c *Client) hold(ctx context.Context, id *Identity, address string) ended {
	var held atomic.Bool
	s := newSession(ctx, c, id, address)
	err := s.open()
	if err != nil {
		s.close(err)
		c.failed(id, address, err)
		return ended{err: err}
	}
	timer := time.AfterFunc(c.cfg.Heartbeat, func() { held.Store(true) })
	defer timer.Stop()
	if id.Revoked != "" {
		id.Revoked = ""
		s.save()
	}
	c.up(s)
	c.cfg.Handler.LinkUp()

	err = s.read()
	c.down(err)
	s.close(err)
	c.cfg.Handler.LinkDown(err)
	var revoked *errRevoked
	if errors.As(err, &revoked) {
		c.revoked(id, revoked.sentence)
	}
	return ended{up: true, held: held.Load(), err: err}
}

func (c *Client) up(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
	c.state = State{Connected: true, Since: c.cfg.Clock.Now(), Address: s.address}
}

func (c *Client) down(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = nil
	c.state = State{Since: c.cfg.Clock.Now(), Address: c.state.Address, Error: err.Error()}
}

// failed notes a session that never stood.
func (c *Client) failed(id *Identity, address string, err error) {
	c.mu.Lock()
	c.state.Address, c.state.Error = address, err.Error()
	c.mu.Unlock()
	if link.CodeOf(err) == link.NodeRevoked {
		c.revoked(id, err.Error())
	}
}

// revoked keeps the sentence and tells it, once.
func (c *Client) revoked(id *Identity, sentence string) {
	c.mu.Lock()
	c.state.Revoked = sentence
	c.mu.Unlock()
	if id.Revoked != "" {
		return
	}
	id.Revoked = sentence
	if err := id.Save(c.cfg.Path); err != nil {
		c.cfg.Log.Warn("the revocation is not kept", "cause", err)
	}
	c.cfg.Handler.Revoked(sentence)
}
