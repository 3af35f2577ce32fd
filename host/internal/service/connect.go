package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// startup is how long Connect waits for a service that holds the store and
// does not answer yet.
const startup = 5 * time.Second

// Connect returns whoever can do the verbs: the running service, or, when none
// holds the store, one opened here. close ends it.
func Connect(ctx context.Context, cfg Config) (h Host, close func() error, err error) {
	r := &remote{cfg: cfg, door: asker(cfg)}
	if err := r.connect(ctx); err != nil {
		return nil, nil, err
	}
	if r.own != nil {
		return r.own, r.close, nil
	}
	return r, r.close, nil
}

// asker asks at the door of the running service. It waits for nobody: whoever
// gets the store first does the work.
func asker(cfg Config) *door.Client {
	return &door.Client{Path: cfg.Layout.HostSocket(), Tell: func(u *door.Unanswered) error {
		switch u.How {
		case door.NotAllowed:
			return permission(fmt.Errorf("cannot ask the host: %w", u.Err))
		case door.Absent, door.Cut:
			return fmt.Errorf("cannot ask the host: the host ended while it was asked: %w", u.Err)
		case door.Strange:
			return fmt.Errorf("cannot ask the host: %w; is it another version?", u.Err)
		}
		return fmt.Errorf("cannot ask the host: %w", u.Err)
	}}
}

// Gone says that err is that of a service that ended while it was asked.
func Gone(err error) bool {
	how := door.HowOf(err)
	return how == door.Absent || how == door.Cut
}

// connect finds the running service, or opens one here.
func (r *remote) connect(ctx context.Context) error {
	deadline, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	for {
		if err := r.door.Greet(deadline); !Gone(err) {
			return err
		}
		// Asking makes nothing: without a state directory there is no host.
		if _, err := os.Stat(r.cfg.Layout.State()); errors.Is(err, fs.ErrNotExist) {
			return fault.Failedf("cannot ask the host: none is installed here (%q is not there)", r.cfg.Layout.State()).
				Hint("install it first: mesh-host install, from an unpacked tarball; or name where it is: --root DIR")
		}
		s, err := Open(ctx, r.cfg)
		if err == nil {
			s.start(beat{})
			r.own = s
			return nil
		}
		if !errors.Is(err, store.ErrLocked) {
			return permission(err)
		}
		select {
		case <-deadline.Done():
			return fault.Failedf("cannot ask the host: %w %q and does not answer on %q", err, r.cfg.Layout.HostStore(), r.cfg.Layout.HostSocket())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func permission(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.Failedf("%w", err).Hint("it answers root only: use sudo")
	}
	return err
}
