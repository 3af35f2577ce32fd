package door

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// number is a question and an answer.
type number struct {
	N int `json:"n"`
}

var (
	double = Verb[number, number]{Name: "double"}
	again  = Verb[number, number]{Name: "again", Again: true}
)

// patient waits for longer than a test takes.
func patient(path string) *Client {
	return &Client{Path: path, Patience: time.Hour, Waits: func() bool { return true }}
}

// serve answers with h at path; stop ends it.
func serve(t *testing.T, path string, s Server) (stop func() error) {
	t.Helper()
	l, err := Listen(path, OwnerOnly)
	if err != nil {
		t.Fatal(err)
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	return stop
}

// doubling is a daemon that does f for each verb.
func doubling(f func(context.Context, number) (number, error)) http.Handler {
	m := http.NewServeMux()
	double.Handle(m, f)
	again.Handle(m, f)
	return m
}

func TestAtTheEndAnAskerIsToldWhatBecameOfIt(t *testing.T) {
	path, asked := filepath.Join(t.TempDir(), "s"), make(chan struct{})
	stop := serve(t, path, Server{Grace: time.Hour, Handler: doubling(func(ctx context.Context, q number) (number, error) {
		close(asked)
		<-ctx.Done()
		return q, fault.Refusedf("it was interrupted").Hint("ask again")
	})})
	answered := make(chan error, 1)
	go func() {
		_, err := double.Ask(t.Context(), &Client{Path: path}, number{})
		answered <- err
	}()
	<-asked
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := <-answered; fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) != "ask again" || HowOf(err) != 0 {
		t.Errorf("%v", err)
	}
	if err := (&Client{Path: path}).Greet(t.Context()); HowOf(err) != Absent {
		t.Errorf("after the end: %v", err)
	}
}

func TestWhatOutlivesItsGraceIsCut(t *testing.T) {
	path, asked, release := filepath.Join(t.TempDir(), "s"), make(chan struct{}), make(chan struct{})
	defer close(release)
	stop := serve(t, path, Server{Grace: time.Millisecond, Handler: doubling(func(context.Context, number) (number, error) {
		close(asked)
		<-release
		return number{}, nil
	})})
	answered := make(chan error, 1)
	go func() {
		_, err := double.Ask(t.Context(), patient(path), number{})
		answered <- err
	}()
	<-asked
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := <-answered; HowOf(err) != Cut {
		t.Errorf("%v", err)
	}
}

func TestAHandlerThatOutlivesItsAskerIsWaitedFor(t *testing.T) {
	path, asked, done := filepath.Join(t.TempDir(), "s"), make(chan struct{}), false
	gone, release := make(chan struct{}), make(chan struct{})
	stop := serve(t, path, Server{Grace: time.Hour, Handler: doubling(func(ctx context.Context, q number) (number, error) {
		close(asked)
		<-ctx.Done()
		close(gone)
		<-release
		done = true
		return q, nil
	})})
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := again.Ask(ctx, patient(path), number{})
		answered <- err
	}()
	<-asked
	leave()
	if err := <-answered; HowOf(err) != Other || !errors.Is(err, context.Canceled) {
		t.Errorf("the asker who left: %v", err)
	}
	<-gone
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	close(release)
	if err := <-ended; err != nil || !done {
		t.Errorf("done %v, %v", done, err)
	}
}

func TestAPanicIsLoggedAndCutsItsAskerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	var log bytes.Buffer
	stop := serve(t, path, Server{Log: slog.New(slog.NewTextHandler(&log, nil)), Handler: doubling(func(_ context.Context, q number) (number, error) {
		return number{q.N * 2 / q.N}, nil
	})})
	if _, err := double.Ask(t.Context(), patient(path), number{}); HowOf(err) != Cut {
		t.Errorf("%v", err)
	}
	if a, err := double.Ask(t.Context(), patient(path), number{3}); err != nil || a.N != 2 {
		t.Errorf("%v, %v", a, err)
	}
	if err := stop(); err != nil || !strings.Contains(log.String(), "divide by zero") {
		t.Errorf("%v, and the log is %q", err, log.String())
	}
}

// failing cannot accept.
type failing struct{ net.Listener }

func (failing) Accept() (net.Conn, error) { return nil, io.ErrClosedPipe }

func TestADoorThatCannotBeServedIsAnError(t *testing.T) {
	l, err := Listen(filepath.Join(t.TempDir(), "s"), OwnerOnly)
	if err != nil {
		t.Fatal(err)
	}
	s := Server{Handler: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler)}
	if err := s.Serve(t.Context(), failing{l}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}
