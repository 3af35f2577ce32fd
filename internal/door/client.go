package door

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// A Client asks at the door of a daemon.
type Client struct {
	Path string
	// Patience is how long one that restarts is waited for.
	Patience time.Duration
	// Waits says whether there is anybody to wait for; nil is no.
	Waits func() bool
	// Tell puts what was not answered in the program's own words, with a remedy.
	// Whatever it returns, HowOf finds the Unanswered in it.
	Tell func(*Unanswered) error

	bound int64 // of an answer, if not maxAnswer
}

// origin stands for the socket in an address; nobody looks it up.
const origin = "http://door"

// Greet returns nil when somebody answers, whatever he says. It waits for nobody.
func (c *Client) Greet(ctx context.Context) error {
	return c.persist(ctx, 0, nil, false, func() error { return c.greet(ctx) })
}

// Wait returns when somebody answers, or the time is over; it tries once at
// least. It waits even where there is nobody to wait for yet.
func (c *Client) Wait(ctx context.Context, most time.Duration) error {
	return c.persist(ctx, most, func() bool { return true }, true, func() error { return c.greet(ctx) })
}

// greet asks for nothing, to see whether anybody answers.
func (c *Client) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+"/", nil)
	if err != nil {
		return err
	}
	res, err := c.do(r)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// once asks once. What is not answered is an *Unanswered, and not told yet.
func (c *Client) once(r *http.Request, into any) error {
	res, err := c.do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	bound := cmp.Or(c.bound, maxAnswer)
	b, err := io.ReadAll(io.LimitReader(res.Body, bound+1))
	switch {
	case err != nil:
		return unanswered(r.Context(), c.Path, fmt.Errorf("its answer breaks off: %w", err))
	case int64(len(b)) > bound:
		return &Unanswered{Strange, fmt.Errorf("its answer is larger than %d bytes", bound)}
	}
	return read(res.Status, b, into)
}

// do has a connection for each question: what breaks it is about this question,
// and no question is sent into a connection that a daemon left behind.
func (c *Client) do(r *http.Request) (*http.Response, error) {
	t := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return Dial(ctx, c.Path) },
		DisableKeepAlives: true, DisableCompression: true,
	}
	res, err := t.RoundTrip(r)
	if err != nil {
		return nil, unanswered(r.Context(), c.Path, err)
	}
	return res, nil
}

// persist calls once until it is answered, as long as it makes sense: for most,
// while nobody is there and waits says that somebody will be, and, if the question
// may be asked again, a few times when it was cut.
func (c *Client) persist(ctx context.Context, most time.Duration, waits func() bool, again bool, once func() error) error {
	// Who ends at each asking ends because of it.
	const mostCuts = 3
	over, tick := time.NewTimer(most), time.NewTicker(100*time.Millisecond)
	defer over.Stop()
	defer tick.Stop()
	for cuts := 0; ; {
		err := once()
		u, unanswered := err.(*Unanswered)
		if !unanswered {
			return err
		}
		if u.How == Cut {
			cuts++
		}
		if !(u.How == Absent && waits != nil && waits()) && !(u.How == Cut && again && cuts < mostCuts) {
			return c.told(u)
		}
		select {
		case <-ctx.Done():
			return c.told(u)
		case <-over.C:
			return c.told(u)
		case <-tick.C:
		}
	}
}

// told is what was not answered in the program's words.
func (c *Client) told(u *Unanswered) error {
	if c.Tell == nil {
		return u
	}
	return told{c.Tell(u), u}
}

type told struct {
	error
	unanswered *Unanswered
}

func (t told) Unwrap() []error { return []error{t.error, t.unanswered} }
