package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// stall is how long a download may stand still.
const stall = 60 * time.Second

var errStalled = fmt.Errorf("nothing came for %s", stall)

// content opens one blob.
func (s *session) content(ctx context.Context, d digest.Digest) (io.ReadCloser, error) {
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("cannot fetch %q: %w", d, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(s.ctx, func() { cancel(ErrNoLink) })
	timer := time.AfterFunc(stall, func() { cancel(errStalled) })
	end := func() {
		timer.Stop()
		unhook()
		cancel(nil)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address+link.PathContent+d.String(), nil)
	if err != nil {
		end()
		return nil, err
	}
	resp, err := s.http.RoundTrip(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		if err = readAnswer(resp, &plainAnswer{}); err == nil {
			err = errors.New("the answer is not the content")
		}
		resp.Body.Close()
	} else if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("cannot fetch %s: %w", d, err)
	}
	timer.Stop()
	return &download{ctx: ctx, body: resp.Body, end: end, stall: timer}, nil
}

// A download is a body that cannot stand still for ever.
type download struct {
	ctx   context.Context
	body  io.ReadCloser
	end   func()
	stall *time.Timer
}

// Read reads the content.
func (d *download) Read(p []byte) (int, error) {
	d.stall.Reset(stall)
	n, err := d.body.Read(p)
	// Between two reads it is the caller who is slow.
	d.stall.Stop()
	if err != nil && err != io.EOF && d.ctx.Err() != nil {
		err = context.Cause(d.ctx)
	}
	return n, err
}

// Close ends the download, wherever it is.
func (d *download) Close() error {
	err := d.body.Close()
	d.end()
	return err
}
