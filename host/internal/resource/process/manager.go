package process

import (
	"context"
	"errors"
	"fmt"

	"github.com/coreos/go-systemd/v22/dbus"
)

// systemManager asks systemd over its private socket, so that it works without
// a D-Bus daemon and while that is restarted. Nothing here is called when
// everything is as declared.
type systemManager struct{}

func (systemManager) with(ctx context.Context, f func(*dbus.Conn) error) error {
	c, err := dbus.NewSystemdConnectionContext(ctx)
	if err == nil {
		defer c.Close()
		err = f(c)
	}
	if err != nil {
		return fmt.Errorf("cannot ask systemd: %w", err)
	}
	return nil
}

func (m systemManager) stale(ctx context.Context, unit string) (stale bool, err error) {
	err = m.with(ctx, func(c *dbus.Conn) error {
		p, err := c.GetUnitPropertiesContext(ctx, unit)
		if err != nil {
			return err
		}
		stale = p["LoadState"] != "loaded" || p["NeedDaemonReload"] == true
		return nil
	})
	return stale, err
}

func (m systemManager) reload(ctx context.Context) error {
	return m.with(ctx, func(c *dbus.Conn) error { return c.ReloadContext(ctx) })
}

func (m systemManager) start(ctx context.Context, unit string) error {
	return m.with(ctx, func(c *dbus.Conn) error { return job(ctx, c.StartUnitContext, "start", unit) })
}

func (m systemManager) stop(ctx context.Context, unit string) error {
	return m.with(ctx, func(c *dbus.Conn) error {
		p, err := c.GetUnitPropertiesContext(ctx, unit)
		if err != nil {
			return err
		}
		// One that systemd does not know cannot be stopped, and need not be.
		if p["LoadState"] == "not-found" && p["ActiveState"] == "inactive" {
			return nil
		}
		return job(ctx, c.StopUnitContext, "stop", unit)
	})
}

// job runs a job to its end. "done" is the one good result of those that
// systemd names (org.freedesktop.systemd1(5), JobRemoved).
func job(ctx context.Context, run func(context.Context, string, string, chan<- string) (int, error), verb, unit string) error {
	result := make(chan string, 1)
	if _, err := run(ctx, unit, "replace", result); err != nil {
		return err
	}
	select {
	case r := <-result:
		if r != "done" {
			return fmt.Errorf("to %s %q ended with %q", verb, unit, r)
		}
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("to %s %q has not ended", verb, unit), ctx.Err())
	}
}
