package admin

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/socket"
)

// A Client speaks to the control plane of this machine.
type Client struct {
	http *http.Client
	path string
	// Patience is how long a control plane that restarts is waited for.
	Patience time.Duration
}

// NewClient returns a client of the socket at path.
func NewClient(path string) *Client { return &Client{http: socket.Client(path), path: path} }

// Wait returns when the control plane answers, or the time is over; it tries
// once at least. Only one that is not there is waited for: a refusal is final.
func (c *Client) Wait(ctx context.Context, most time.Duration) error {
	over := time.After(most)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := c.greet(ctx)
		if err == nil {
			return nil
		}
		if !absent(err) {
			return c.explain(err)
		}
		select {
		case <-ctx.Done():
			return c.explain(err)
		case <-over:
			return c.explain(err)
		case <-again.C:
		}
	}
}

// greet asks for nothing, to see whether anybody answers.
func (c *Client) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://controller/", nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// settled says whether there is, or was, a control plane on this machine.
func (c *Client) settled() bool {
	_, err := os.Stat(filepath.Dir(c.path))
	return err == nil
}

// A patience is the time that one question may wait.
type patience struct {
	client *Client
	over   *time.Timer
	tick   *time.Ticker
	broken int
}

func (c *Client) patience() *patience {
	return &patience{client: c, over: time.NewTimer(c.Patience), tick: time.NewTicker(100 * time.Millisecond)}
}

func (p *patience) stop() { p.over.Stop(); p.tick.Stop() }

// again waits a little and says whether to ask again after err.
func (p *patience) again(ctx context.Context, err error, repeatable bool) bool {
	const most = 3 // who closes each connection does not restart: it refuses us
	switch {
	case absent(err) && p.client.settled():
		p.broken = 0
	case repeatable && cut(err) && p.broken < most:
		p.broken++
	default:
		return false
	}
	select {
	case <-ctx.Done():
	case <-p.over.C:
	case <-p.tick.C:
		return true
	}
	return false
}

// cut says that the other end ended in the middle.
func cut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED)
}

func (c *Client) explain(err error) error {
	switch {
	case absent(err) && c.settled():
		// It ran here: what keeps it up is to be looked at, and a second one beside
		// that would only be in its way.
		return fault.Failedf("cannot reach the control plane: nothing answers on %q", c.path).
			Hint("it is kept up by mesh-host: see `mesh-host status`, or `systemctl status nox-mesh-controller`")
	case absent(err):
		return fault.Failedf("cannot reach the control plane: nothing answers on %q", c.path).
			Hint("start it with `mesh-controller serve`")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return fault.Failedf("cannot reach the control plane: it speaks to root and its own user only").
			Hint("run it with sudo")
	}
	return fault.Failedf("cannot reach the control plane: %w", err)
}
