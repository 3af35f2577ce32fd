package service

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// The host's socket: JSON over HTTP, each verb of Host one path. A fault comes
// back as status 422 with the fault as the body, so the exit code of a command
// is the same whoever did the work.
const (
	pathPing    = "/v1/ping" // answered at once, whatever the host is at
	pathStatus  = "/v1/status"
	pathOwned   = "/v1/owned"
	pathHistory = "/v1/history"
	pathPlan    = "/v1/plan"
	pathApply   = "/v1/apply"
	pathBundle  = "/v1/bundle"
	pathEnrol   = "/v1/enrol"
	pathPass    = "/v1/pass"
)

// maxRequest bounds what a request carries: a declaration, in JSON's clothes.
const maxRequest = 2*declaration.MaxSize + 4096

func (s *Service) serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	get(mux, pathPing, func(context.Context) (string, error) { return version.Running(), nil })
	get(mux, pathStatus, s.Status)
	get(mux, pathOwned, s.Owned)
	get(mux, pathHistory, s.History)
	post(mux, pathPlan, s.Plan)
	post(mux, pathApply, s.Apply)
	post(mux, pathBundle, s.Bundle)
	post(mux, pathEnrol, s.Enrol)
	post(mux, pathPass, func(ctx context.Context, _ struct{}) (any, error) { return s.Pass(ctx) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		// Who waits for a pass is told that it was interrupted.
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(grace) != nil {
			server.Close()
		}
	}()
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		<-done
		return nil
	}
	return err
}

func get[T any](mux *http.ServeMux, path string, f func(context.Context) (T, error)) {
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		out, err := f(r.Context())
		reply(w, out, err)
	})
}

func post[A, T any](mux *http.ServeMux, path string, f func(context.Context, A) (T, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var in A
		if err := json.NewDecoder(io.LimitReader(r.Body, maxRequest)).Decode(&in); err != nil {
			reply(w, nil, fault.Usagef("cannot read the request: %w", err))
			return
		}
		out, err := f(r.Context(), in)
		reply(w, out, err)
	})
}

func reply(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		out = fault.Error{Kind: fault.KindOf(err), Sentence: err.Error(), Remedy: fault.RemedyOf(err)}
	}
	_ = cli.JSON(w, out)
}
