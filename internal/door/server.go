package door

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// A Server answers at the door of a daemon.
type Server struct {
	Handler http.Handler
	// Grace is how long a question may still take to be answered at the end.
	Grace time.Duration
	// Log is told of what no asker can be: a handler that panics.
	Log *slog.Logger
}

// Serve answers on l until ctx ends. Handlers are told by their contexts that it
// does, and have the grace to say what became of the question. What takes longer
// is cut, and not waited for.
func (s Server) Serve(ctx context.Context, l net.Listener) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	srv := &http.Server{
		Handler: s.Handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return serving },
		ErrorLog:    slog.NewLogLogger(s.Log.Handler(), slog.LevelError),
	}
	ended := make(chan error, 1)
	go func() { defer stop(); ended <- srv.Serve(l) }()
	<-serving.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Grace)
	defer cancel()
	if srv.Shutdown(last) != nil {
		_ = srv.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
