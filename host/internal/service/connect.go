package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/socket"
)

// startup is how long Connect waits for a service that holds the store and
// does not answer yet.
const startup = 5 * time.Second

// Connect returns whoever can do the verbs: the running service, or, when none
// holds the store, one opened here. close ends it.
func Connect(ctx context.Context, cfg Config) (h Host, close func() error, err error) {
	r := &remote{client: socket.Client(cfg.Layout.HostSocket())}
	deadline, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	for {
		err := r.ping(deadline)
		if err == nil || !isDown(err) {
			return r, func() error { return nil }, permission(err)
		}
		// Asking makes nothing: without a state directory there is no host.
		if _, err := os.Stat(cfg.Layout.State()); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fault.Failedf("cannot ask the host: none is installed here (%q is not there)", cfg.Layout.State()).
				Hint("install it first: mesh-host install, from an unpacked tarball")
		}
		s, err := Open(ctx, cfg)
		if err == nil {
			s.start(beat{})
			return s, s.Close, nil
		}
		if !errors.Is(err, store.ErrLocked) {
			return nil, nil, permission(err)
		}
		select {
		case <-deadline.Done():
			return nil, nil, fault.Failedf("cannot ask the host: %w %q and does not answer on %q", err, cfg.Layout.HostStore(), cfg.Layout.HostSocket())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// isDown: nobody listens at the socket.
func isDown(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

func permission(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.Failedf("%w", err).Hint("it answers root only: use sudo")
	}
	return err
}

// ErrGone is in the chain of the error when the service ended while it was
// asked. Every verb may be asked again.
var ErrGone = errors.New("the host ended while it was asked")

// remote is the running service, over its socket.
type remote struct{ client *http.Client }

func (r *remote) ping(ctx context.Context) error {
	var version string
	return r.do(ctx, pathPing, nil, &version)
}

func (r *remote) Status(ctx context.Context) (out Status, err error) {
	err = r.do(ctx, pathStatus, nil, &out)
	return out, err
}

func (r *remote) Owned(ctx context.Context) (out []Owned, err error) {
	err = r.do(ctx, pathOwned, nil, &out)
	return out, err
}

func (r *remote) History(ctx context.Context) (out []link.Report, err error) {
	err = r.do(ctx, pathHistory, nil, &out)
	return out, err
}

func (r *remote) Plan(ctx context.Context, document []byte) (out []apply.Step, err error) {
	err = r.do(ctx, pathPlan, document, &out)
	return out, err
}

func (r *remote) Apply(ctx context.Context, document []byte) (out link.Report, err error) {
	err = r.do(ctx, pathApply, document, &out)
	return out, err
}

func (r *remote) Bundle(ctx context.Context, req BundleRequest) (out link.Report, err error) {
	err = r.do(ctx, pathBundle, req, &out)
	return out, err
}

func (r *remote) Enrol(ctx context.Context, token string) (out Enrolled, err error) {
	err = r.do(ctx, pathEnrol, token, &out)
	return out, err
}

func (r *remote) Pass(ctx context.Context) (out link.Report, err error) {
	err = r.do(ctx, pathPass, struct{}{}, &out)
	return out, err
}

// do calls one verb: GET without an argument, POST with one.
func (r *remote) do(ctx context.Context, path string, in, out any) error {
	method, body := http.MethodGet, io.Reader(nil)
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		method, body = http.MethodPost, bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://mesh-host"+path, body)
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // who asked and for what is not news
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err != nil {
		return fmt.Errorf("cannot ask the host: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var f fault.Error
		if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&f); err != nil || f.Sentence == "" {
			return fmt.Errorf("cannot ask the host: it answered %s; is it another version?", resp.Status)
		}
		return &f
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("cannot read the host's answer: %w: %w", ErrGone, err)
	}
	return nil
}
