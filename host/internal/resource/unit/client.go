package unit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"
)

// client asks systemd over its private socket, so that it works without a D-Bus
// daemon and while that is restarted. All calls share one connection, which is
// closed when nobody has used it for a while.
type client struct {
	mu    sync.Mutex
	conn  *dbus.Conn
	users int
	idle  *time.Timer
}

// idleTime is how long a connection is kept for who comes next: the rest of the
// pass.
const idleTime = 5 * time.Second

// attempts and pause bound how long systemd may be away, as it is for a moment
// when it executes itself anew: 15 s.
const (
	attempts = 20
	pause    = 800 * time.Millisecond
)

// with calls f, and calls it again on another connection when this one ends.
func (c *client) with(ctx context.Context, f func(*dbus.Conn) error) error {
	for n := 1; ; n++ {
		conn, err := c.acquire(ctx)
		lost := err != nil
		if err == nil {
			err = f(conn)
			lost = err != nil && (ended(err) || !conn.Connected())
			c.release(conn, lost)
		}
		switch {
		case err == nil:
			return nil
		case !lost || ctx.Err() != nil || n == attempts:
			return fmt.Errorf("systemd says: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(50*time.Millisecond<<n, pause)):
		}
	}
}

// ended reports whether err says that there is nobody at the other end. The one
// who writes first may learn it before the connection says so of itself.
func ended(err error) bool {
	for _, e := range []error{errLost, unix.EPIPE, unix.ECONNRESET, io.EOF, net.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (c *client) acquire(ctx context.Context) (*dbus.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil || !c.conn.Connected() {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		c.conn, c.users = conn, 0
	}
	if c.idle != nil {
		c.idle.Stop()
	}
	c.users++
	return c.conn, nil
}

// dial connects; the connection outlives ctx.
func dial(ctx context.Context) (*dbus.Conn, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	conn, err := dbus.NewSystemdConnectionContext(life)
	if err == nil && !stop() {
		conn.Close()
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, err
	}
	return conn, nil
}

func (c *client) release(conn *dbus.Conn, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn != c.conn {
		return // lost, and closed by who noticed first
	}
	c.users--
	switch {
	case lost:
		c.conn = nil
		conn.Close()
	case c.users == 0:
		c.idle = time.AfterFunc(idleTime, func() { c.closeIdle(conn) })
	}
}

func (c *client) closeIdle(conn *dbus.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == conn && c.users == 0 {
		c.conn = nil
		conn.Close()
	}
}

func (c *client) look(ctx context.Context, unit string) (s status, err error) {
	err = c.with(ctx, func(conn *dbus.Conn) error {
		p, err := conn.GetUnitPropertiesContext(ctx, unit)
		if err != nil {
			return err
		}
		s = statusOf(p)
		if s.Active == "active" || s.Load == "not-found" {
			return nil
		}
		more, err := conn.GetUnitTypePropertiesContext(ctx, unit, interfaceOf(unit))
		if err != nil {
			return err
		}
		s.detail(more)
		return nil
	})
	return s, err
}

// interfaceOf is the name of the D-Bus interface of a unit's type: "Service".
func interfaceOf(unit string) string {
	t := strings.TrimPrefix(path.Ext(unit), ".")
	return strings.ToUpper(t[:1]) + t[1:]
}

func (c *client) fileState(ctx context.Context, unit string) (state string, err error) {
	pattern := strings.ReplaceAll(unit, `\`, `\\`) // fnmatch(3)
	err = c.with(ctx, func(conn *dbus.Conn) error {
		files, err := conn.ListUnitFilesByPatternsContext(ctx, nil, []string{pattern})
		for _, f := range files {
			if path.Base(f.Path) == unit {
				state = f.Type
			}
		}
		return err
	})
	return state, err
}

func (c *client) enable(ctx context.Context, unit string, runtime bool) (links []string, err error) {
	err = c.with(ctx, func(conn *dbus.Conn) error {
		_, changes, err := conn.EnableUnitFilesContext(ctx, []string{unit}, runtime, false)
		for _, ch := range changes {
			links = append(links, ch.Filename)
		}
		return err
	})
	return links, err
}

func (c *client) disable(ctx context.Context, unit string, runtime bool) (links []string, err error) {
	err = c.with(ctx, func(conn *dbus.Conn) error {
		changes, err := conn.DisableUnitFilesContext(ctx, []string{unit}, runtime)
		for _, ch := range changes {
			links = append(links, ch.Filename)
		}
		return err
	})
	return links, err
}

func (c *client) reload(ctx context.Context) error {
	return c.with(ctx, func(conn *dbus.Conn) error { return conn.ReloadContext(ctx) })
}

func (c *client) resetFailed(ctx context.Context, unit string) error {
	return c.with(ctx, func(conn *dbus.Conn) error { return conn.ResetFailedUnitContext(ctx, unit) })
}

// errLost says that nobody will tell any more how a job ended.
var errLost = errors.New("the connection ended before the job did")

// lookout is how often it is looked whether the connection still is. go-systemd
// does not say when it ends.
const lookout = 100 * time.Millisecond

func (c *client) job(ctx context.Context, v verb, unit string) (result string, err error) {
	err = c.with(ctx, func(conn *dbus.Conn) error {
		run := map[verb]func(context.Context, string, string, chan<- string) (int, error){
			start: conn.StartUnitContext, stop: conn.StopUnitContext,
			restart: conn.RestartUnitContext, reload: conn.ReloadOrRestartUnitContext,
		}[v]
		ended := make(chan string, 1)
		if _, err := run(ctx, unit, "replace", ended); err != nil {
			return err
		}
		tick := time.NewTicker(lookout)
		defer tick.Stop()
		for {
			select {
			case result = <-ended:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
				if !conn.Connected() {
					return errLost
				}
			}
		}
	})
	return result, err
}
