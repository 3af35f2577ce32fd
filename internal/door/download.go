package door

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Download is a verb whose answer is bytes without a bound, which the asker reads
// as they come. How it ended comes last, so that an answer that was cut is never
// taken for a whole one.
type Download[Q any] struct{ Name string }

// ending is the trailer that says how it ended: "null", or the fault.
const ending = "Nox-Ending"

// Handle puts f behind the verb. A fault of f is told also after bytes were sent.
func (d Download[Q]) Handle(m *http.ServeMux, f func(context.Context, Q, io.Writer) error) {
	m.HandleFunc("POST "+path(d.Name), func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if err := decode(http.MaxBytesReader(w, r.Body, maxQuestion), &q); err != nil {
			reply(w, nil, fault.Usagef("cannot read the question: %w", err))
			return
		}
		w.Header().Set("Trailer", ending)
		w.Header().Set("Content-Type", "application/octet-stream")
		out := &begun{Writer: w}
		err := f(r.Context(), q, out)
		if err != nil && !out.any {
			w.Header().Del("Trailer")
			reply(w, nil, err)
			return
		}
		told := []byte("null")
		if err != nil {
			told, _ = json.Marshal(fault.Error{Kind: fault.KindOf(err), Sentence: err.Error(), Remedy: fault.RemedyOf(err)})
		}
		w.Header().Set(ending, string(told))
	})
}

// begun knows whether anything was written.
type begun struct {
	io.Writer
	any bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.any = true
	return b.Writer.Write(p)
}

// Fetch asks whoever answers at c and writes what comes to w. Nobody there is
// waited for before the first byte, and not any more after that. An error of w's
// own is returned as it is.
func (d Download[Q]) Fetch(ctx context.Context, c *Client, q Q, w io.Writer) error {
	b, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if err := c.persist(ctx, c.Patience, c.Waits, true, func() error { return c.greet(ctx) }); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, origin+path(d.Name), bytes.NewReader(b))
	if err != nil {
		return err
	}
	res, err := c.do(r)
	if err != nil {
		return c.untold(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b, err := io.ReadAll(io.LimitReader(res.Body, maxQuestion))
		if err != nil {
			return c.untold(unanswered(ctx, c.Path, err))
		}
		return c.untold(read(res.Status, b, new(None)))
	}
	into := &sink{w: w}
	_, err = io.Copy(into, res.Body)
	switch told := res.Trailer.Get(ending); {
	case into.err != nil:
		return into.err
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return c.untold(unanswered(ctx, c.Path, fmt.Errorf("its answer breaks off: %w", err)))
	case told == "null":
		return nil
	case told == "":
		return c.told(&Unanswered{Cut, errors.New("its answer breaks off")})
	default:
		return c.untold(read("422", []byte(told), new(None)))
	}
}

// untold is err in the program's words, if it is that nobody answered.
func (c *Client) untold(err error) error {
	if u, ok := err.(*Unanswered); ok {
		return c.told(u)
	}
	return err
}

// A sink remembers why it could not be written to: that is no fault of the
// daemon's.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}
