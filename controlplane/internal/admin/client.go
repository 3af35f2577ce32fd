package admin

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/socket"
)

// A Client speaks to the control plane of this machine.
type Client struct {
	http *http.Client
	path string
}

// NewClient returns a client of the socket at path.
func NewClient(path string) *Client { return &Client{socket.Client(path), path} }

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

func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED)
}

func (c *Client) explain(err error) error {
	switch {
	case absent(err):
		return fault.Failedf("cannot reach the control plane: nothing answers on %q", c.path).
			Hint("start it with `mesh-controller serve`")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return fault.Failedf("cannot reach the control plane: it speaks to root and its own user only").
			Hint("run it with sudo")
	}
	return fault.Failedf("cannot reach the control plane: %w", err)
}
