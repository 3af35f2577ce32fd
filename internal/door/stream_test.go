package door

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("it was read")
	return 0, io.EOF
}

var count = Stream[number, number]{Name: "count"}

func counting(f func(context.Context, number, io.Reader) (number, error)) http.Handler {
	m := http.NewServeMux()
	count.Handle(m, f)
	return m
}

func TestAStreamIsReadAsItComes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	got := make(chan string)
	serve(t, path, Server{Handler: counting(func(_ context.Context, q number, in io.Reader) (number, error) {
		b := make([]byte, 1)
		for n := q.N; ; n++ {
			if _, err := io.ReadFull(in, b); err != nil {
				return number{n}, nil
			}
			got <- string(b)
		}
	})})
	r, w := io.Pipe()
	answered := make(chan error, 1)
	go func() {
		a, err := count.Send(t.Context(), &Client{Path: path}, number{10}, r)
		if err == nil && a.N != 12 {
			err = errors.New("another answer")
		}
		answered <- err
	}()
	for _, s := range []string{"a", "b"} {
		if _, err := io.WriteString(w, s); err != nil {
			t.Fatal(err)
		}
		if s != <-got {
			t.Errorf("not %s", s)
		}
	}
	w.Close()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestAStreamIsNeverSentTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	var sent atomic.Int32
	serve(t, path, Server{Handler: counting(func(_ context.Context, _ number, in io.Reader) (number, error) {
		sent.Add(1)
		_, _ = io.ReadFull(in, make([]byte, 1))
		panic(http.ErrAbortHandler)
	})})
	if _, err := count.Send(t.Context(), patient(path), number{}, strings.NewReader("abc")); HowOf(err) != Cut || sent.Load() != 1 {
		t.Errorf("sent %d times: %v", sent.Load(), err)
	}
}

func TestWhatABodyFailsWithIsTheError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, Server{Handler: counting(func(_ context.Context, _ number, in io.Reader) (number, error) {
		_, err := io.Copy(io.Discard, in)
		return number{}, err
	})})
	broken := errors.New("the disk is broken")
	if _, err := count.Send(t.Context(), patient(path), number{}, io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken))); err != broken {
		t.Errorf("%v", err)
	}
	ctx, leave := context.WithCancel(t.Context())
	if _, err := count.Send(ctx, patient(path), number{}, readFunc(func() { leave() })); err != context.Canceled {
		t.Errorf("%v", err)
	}
}

// readFunc is called at each read, and is a body without an end.
type readFunc func()

func (f readFunc) Read(b []byte) (int, error) { f(); return len(b), nil }

func TestAnAnswerToABodyThatGoesOnComesThrough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, Server{Handler: counting(func(context.Context, number, io.Reader) (number, error) {
		return number{}, fault.Refusedf("it is not signed")
	})})
	for name, body := range map[string]io.Reader{"endless": readFunc(func() {}), "a pipe in which nothing comes": silent(t)} {
		if _, err := count.Send(t.Context(), patient(path), number{}, body); fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func silent(t *testing.T) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	return r
}

func TestTheQuestionOfAStreamIsReadStrictly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, Server{Handler: counting(func(context.Context, number, io.Reader) (number, error) { return number{}, nil })})
	for q, ok := range map[string]bool{"q={}": true, "q=%7B%22m%22:1%7D": false, "": false, "q={}{}": false} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin+"/v1/count?"+q, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&Client{Path: path}).once(r, new(number)); ok != (err == nil) || !ok && fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v", q, err)
		}
	}
}
