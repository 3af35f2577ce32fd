package door

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// hang answers nothing: it hangs up, or does so in the middle.
func hang(w http.ResponseWriter, middle bool) {
	if middle {
		w.Header().Set("Content-Length", "7")
		_, _ = io.WriteString(w, `{"n":`)
		_ = http.NewResponseController(w).Flush()
	}
	panic(http.ErrAbortHandler)
}

func TestOnlyWhatMayBeAskedAgainIs(t *testing.T) {
	for name, c := range map[string]struct {
		verb  Verb[number, number]
		cuts  int // how often it is cut before it is answered
		asked int // want
		how   How
	}{
		"once, and may be asked again":   {again, 1, 2, 0},
		"twice, and may be asked again":  {again, 2, 3, 0},
		"always, and may be asked again": {again, 100, 3, Cut},
		"once, and may not":              {double, 1, 1, Cut},
	} {
		for _, middle := range []bool{false, true} {
			asked, path := 0, filepath.Join(t.TempDir(), "s")
			answers := doubling(func(_ context.Context, q number) (number, error) { return number{q.N * 2}, nil })
			stop := serve(t, path, Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked++; asked <= c.cuts {
					hang(w, middle)
				}
				answers.ServeHTTP(w, r)
			})})
			a, err := c.verb.Ask(t.Context(), patient(path), number{4})
			if err := stop(); err != nil {
				t.Error(err)
			}
			if HowOf(err) != c.how || (err == nil) != (c.how == 0) || asked != c.asked || err == nil && a.N != 8 {
				t.Errorf("cut %s, in the middle %v: asked %d times, %v, %v", name, middle, asked, a, err)
			}
		}
	}
}

func TestWithoutPatienceNothingIsAskedAgain(t *testing.T) {
	asked, path := 0, filepath.Join(t.TempDir(), "s")
	stop := serve(t, path, Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; hang(w, false) })})
	_, err := again.Ask(t.Context(), &Client{Path: path}, number{})
	if err := stop(); err != nil || asked != 1 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	if HowOf(err) != Cut {
		t.Errorf("%v", err)
	}
}

// dead is a socket that a crash left behind.
func dead(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	return path
}

func TestNobodyIsWaitedForWhereThereIsNobody(t *testing.T) {
	for name, path := range map[string]string{"no socket": filepath.Join(t.TempDir(), "none", "s"), "a dead one": dead(t)} {
		for _, waits := range []func() bool{nil, func() bool { return false }} {
			c := &Client{Path: path, Patience: time.Hour, Waits: waits}
			if _, err := again.Ask(t.Context(), c, number{}); HowOf(err) != Absent {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := (Stream[None, None]{Name: "x"}).Send(t.Context(), c, None{}, unread{t}); HowOf(err) != Absent {
				t.Errorf("%s: %v", name, err)
			}
		}
		// Nor longer than patience lasts, or the asker wants.
		c := &Client{Path: path, Patience: time.Millisecond, Waits: func() bool { return true }}
		if _, err := again.Ask(t.Context(), c, number{}); HowOf(err) != Absent {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Wait(t.Context(), time.Millisecond); HowOf(err) != Absent {
			t.Errorf("%s: %v", name, err)
		}
		ctx, leave := context.WithCancel(t.Context())
		c = patient(path)
		c.Waits = func() bool { leave(); return true }
		if _, err := again.Ask(ctx, c, number{}); HowOf(err) != Absent {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADaemonThatStartsMeanwhileIsAskedOnce(t *testing.T) {
	for name, ask := range map[string]func(*Client) error{
		"ask": func(c *Client) error {
			a, err := double.Ask(t.Context(), c, number{4})
			if err == nil && a.N != 8 {
				err = errors.New("another answer")
			}
			return err
		},
		"wait": func(c *Client) error {
			waits := c.Waits
			c.Waits, c.Tell = nil, nil
			waits() // Wait does not ask
			return c.Wait(t.Context(), time.Hour)
		},
	} {
		path := dead(t)
		waiting := make(chan struct{}, 1)
		c := patient(path)
		c.Waits = func() bool {
			select {
			case waiting <- struct{}{}:
			default:
			}
			return true
		}
		answered := make(chan error, 1)
		go func() { answered <- ask(c) }()
		<-waiting
		var asked atomic.Int32
		serve(t, path, Server{Handler: doubling(func(_ context.Context, q number) (number, error) {
			asked.Add(1)
			return number{q.N * 2}, nil
		})})
		if err := <-answered; err != nil || name == "ask" && asked.Load() != 1 {
			t.Errorf("%s: asked %d times, %v", name, asked.Load(), err)
		}
	}
}

func TestADaemonThatIsFullIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path, OwnerOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// Nobody accepts, so the queue fills (somaxconn, 4096 by default).
	var in []net.Conn
	defer func() {
		for _, c := range in {
			c.Close()
		}
	}()
	for err == nil {
		var c net.Conn
		if c, err = Dial(t.Context(), path); err == nil {
			in = append(in, c)
		}
		if len(in) > 20_000 {
			t.Skip("the queue holds more than this test may open")
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if err := (&Client{Path: path}).Greet(t.Context()); HowOf(err) != Absent {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNotAnsweredIsToldInTheProgramsWords(t *testing.T) {
	c := &Client{Path: dead(t), Tell: func(u *Unanswered) error {
		if u.How != Absent {
			t.Errorf("%d", u.How)
		}
		return fault.Refusedf("nobody is at home").Hint("knock later")
	}}
	_, err := double.Ask(t.Context(), c, number{})
	for _, err := range []error{err, c.Greet(t.Context()), c.Wait(t.Context(), 0)} {
		if err == nil || err.Error() != "nobody is at home" || fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) != "knock later" || HowOf(err) != Absent {
			t.Errorf("%v (%d, %s)", err, HowOf(err), fault.RemedyOf(err))
		}
	}
}
