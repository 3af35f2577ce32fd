package door

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Stream is a verb with more than a message: bytes without a bound, which the
// daemon reads as they come. The question goes in the address.
type Stream[Q, A any] struct{ Name string }

// Handle puts f behind the stream. An asker that goes is noticed by reading.
func (s Stream[Q, A]) Handle(m *http.ServeMux, f func(context.Context, Q, io.Reader) (A, error)) {
	m.HandleFunc("POST "+path(s.Name), func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if err := decode(strings.NewReader(r.URL.Query().Get("q")), &q); err != nil {
			reply(w, nil, fault.Usagef("cannot read the question: %w", err))
			return
		}
		a, err := f(r.Context(), q, r.Body)
		reply(w, a, err)
	})
}

// Send asks whoever answers at c. Nobody there is waited for before the first
// byte, and not any more after that: what came by a pipe is gone with it. An error
// of body's own is returned as it is.
func (s Stream[Q, A]) Send(ctx context.Context, c *Client, q Q, body io.Reader) (a A, err error) {
	b, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	if err := c.persist(ctx, c.Patience, c.Waits, true, func() error { return c.greet(ctx) }); err != nil {
		return a, err
	}
	from := &source{in: body}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, origin+path(s.Name)+"?q="+url.QueryEscape(string(b)), io.NopCloser(from))
	if err != nil {
		return a, err
	}
	err = c.once(r, &a)
	u, unanswered := err.(*Unanswered)
	if !unanswered {
		return a, err
	}
	switch unread := from.err.Load(); {
	case ctx.Err() != nil:
		return a, ctx.Err()
	case unread != nil:
		return a, *unread
	}
	return a, c.told(u)
}

// A source is a body that remembers why it could not be read: that is no fault
// of the daemon's. An answer may come while it is being read.
type source struct {
	in  io.Reader
	err atomic.Pointer[error]
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.in.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err.Store(&err)
	}
	return n, err
}
