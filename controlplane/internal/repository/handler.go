package repository

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// Serve answers on the listeners until ctx ends. It closes the listeners.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	s.Changed()
	defer s.close()
	var plain http.Protocols
	plain.SetHTTP1(true)
	srv := &http.Server{
		Handler:                      http.HandlerFunc(s.answer),
		DisableGeneralOptionsHandler: true,
		Protocols:                    &plain,
		// A request has no body: its time is that of the header.
		ReadHeaderTimeout: s.limits.header,
		ReadTimeout:       s.limits.header,
		IdleTimeout:       s.limits.idle,
		MaxHeaderBytes:    4 << 10,
		// What strangers do would fill the log.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	gate := newGate(s.limits)
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() {
			if err := srv.Serve(gate.watch(l)); !errors.Is(err, http.ErrServerClosed) {
				stop(err)
			}
		})
	}
	<-inner.Done()
	// Who is in the middle of a file goes on by its range.
	_ = srv.Close()
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(inner)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "there is nothing here but to read", http.StatusMethodNotAllowed)
		return
	}
	shelf, file, f := s.find(r.URL.Path)
	if shelf == nil {
		http.Error(w, "there is no such file here", http.StatusNotFound)
		return
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leave(shelf)
	}()
	// All of the answer has one time: who reads slower than that is closed.
	_ = http.NewResponseController(w).SetWriteDeadline(clock.System.Now().Add(s.limits.answer(f.Size)))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", `"`+f.Digest().String()+`"`)
	// There is no date: pacman would take one for the file's, and what is newer has
	// not always a later one.
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(file, 0, f.Size))
}
