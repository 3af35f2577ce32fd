package wire

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// The limits of time. Those of size are where the thing is read.
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	bodyTimeout     = 25 * time.Second
	enrolTimeout    = 2 * time.Minute
	shutdownTimeout = 10 * time.Second
	seenInterval    = time.Minute
	// WriteTimeout is how long one write may take. On HTTP/1.1 the closing of
	// the connection may take five seconds more (crypto/tls, closeNotify).
	WriteTimeout = 20 * time.Second
)

// A Server answers nodes.
type Server struct {
	office  *admission.Office
	content *content.Store
	log     *slog.Logger
	// Links is who is connected; it is told what changes.
	Links *Links
	Seen  *Seen
	// Downloads is the content endpoint as nodes are granted it.
	Downloads *Downloads

	audit     audit
	orphans   orphans
	bodies    *budget
	gate      *gate
	heartbeat time.Duration
	write     time.Duration
	apply     time.Duration
	confirm   time.Duration
}

// New returns a server; Serve runs it.
func New(o *admission.Office, c *content.Store, log *slog.Logger) *Server {
	return &Server{
		office: o, content: c, log: log, Links: newLinks(), Seen: newSeen(o.Clock), Downloads: newDownloads(),
		bodies: newBudget(maxBodies), gate: newGate(), heartbeat: link.HeartbeatInterval, write: WriteTimeout,
		apply: ApplyTime, confirm: confirmTime,
	}
}

// Serve answers on the listeners until ctx ends; then it tells every node over
// what time to come back, ends the links, and returns nil when all is quiet.
// It closes the listeners.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	srv := &http.Server{
		Handler:           s.routes(),
		TLSConfig:         s.office.Authority.ServerConfig(s.office.Clock),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
		ConnContext:       remember,
		// Failed handshakes are other people's doing and would fill the log.
		ErrorLog: log.New(io.Discard, "", 0),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 32,
			SendPingTimeout:      WriteTimeout,
			PingTimeout:          WriteTimeout / 2,
			WriteByteTimeout:     WriteTimeout,
		},
	}
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() {
			if err := srv.ServeTLS(s.gate.watch(l), "", ""); !errors.Is(err, http.ErrServerClosed) {
				stop(err)
			}
		})
	}
	wg.Go(func() { s.keepSeen(inner) })
	<-inner.Done()
	s.Links.Drain()
	// ctx is over; what remains has a time of its own.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if srv.Shutdown(last) != nil {
		_ = srv.Close()
	}
	wg.Wait()
	s.writeSeen()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(inner)
}

// A route is one thing that can be asked.
type route struct {
	pattern string
	handle  http.HandlerFunc
}

// table is all that can be asked. Who may is decided in the handlers, and a test
// tries each as everybody.
func (s *Server) table() []route {
	return []route{
		{"POST " + link.PathHello, s.hello},
		{"POST " + link.PathEnrol, s.enrol},
		{"POST " + link.PathAck, s.asNode(s.ack)},
		{"GET " + link.PathLink, s.asNode(s.heard(s.link))},
		{"POST " + link.PathReports, s.asNode(s.heard(s.report))},
		{"POST " + link.PathInventory, s.asNode(s.heard(s.inventory))},
		{"POST " + link.PathSession, s.asNode(s.kept)},
		{"POST " + link.PathRenew, s.asNode(s.heard(s.renew))},
		{"GET " + link.PathUnowned, s.asNode(s.heard(s.unowned))},
		{"GET " + link.PathContent + "{digest}", s.asNode(s.heard(s.blob))},
		{"POST " + link.PathLeave, s.asNode(s.leave)},
		{"/", func(w http.ResponseWriter, r *http.Request) {
			s.refuseAs(w, http.StatusNotFound, link.Refused.Errorf("there is no %q here", r.Method+" "+r.URL.Path))
		}},
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.table() {
		mux.HandleFunc(r.pattern, r.handle)
	}
	return mux
}

// patience gives the next write its time; it is called right before, because
// HTTP/2 resets a stream whose deadline passes even when nothing is being
// written (net/http, stream.onWriteTimeout). A deadline is of the machine's
// clock and not of the control plane's, which a test may stop.
func (s *Server) patience(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(clock.System.Now().Add(s.write))
}

// calm takes back the time that patience gave.
func calm(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
}

func (s *Server) now() time.Time { return s.office.Clock.Now().UTC() }
