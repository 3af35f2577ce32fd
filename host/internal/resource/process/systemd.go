package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// maxUnit bounds what is read of a unit file.
const maxUnit = 1 << 20

// marker is the first line of every unit written here, and of no other.
const marker = "# Written by mesh-host for a process it was told to run. Changes are undone.\n"

// unitText is the whole unit. Nothing in it comes from a declaration but the
// name, which is a-z, 0-9 and "-".
//
// StartLimitIntervalSec=0: systemd never gives up; counting failures is the
// shim's work. OOMPolicy: it is the shim, too, that decides what becomes of a
// process the kernel killed. KillMode=mixed: SIGTERM goes to the shim alone,
// which ends the process as declared; the time is the shim's own, so this one,
// longer than any stop_timeout, is only there for a shim that hangs.
const unitText = marker + `[Unit]
Description=%[1]s, kept up by mesh-host
StartLimitIntervalSec=0
RequiresMountsFor=%[2]s

[Service]
Type=exec
ExecStart=%[3]s shim %[1]s
Restart=always
RestartSec=1
KillMode=mixed
TimeoutStopSec=2h
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
`

// A Unit is a unit file that somebody else made.
type Unit struct {
	// Content is nil when it is no regular file of this directory.
	Content []byte `json:"content,omitempty"`
	Enabled bool   `json:"enabled,omitempty"`
	// What says what else it is.
	What string `json:"what,omitempty"`
}

// manager is what is asked of systemd itself. The rest is files.
type manager interface {
	// stale reports whether systemd knows the unit not at all, or from another
	// file than there is.
	stale(ctx context.Context, unit string) (bool, error)
	reload(ctx context.Context) error
	// start and stop return when it is done.
	start(ctx context.Context, unit string) error
	stop(ctx context.Context, unit string) error
}

// systemd is the Supervisor where systemd is: a unit keeps the shim up, and
// starts it at boot, before and without the host.
type systemd struct {
	layout  layout.Layout
	manager manager
}

// Systemd returns the supervisor that is a unit for each process.
func Systemd(l layout.Layout) Supervisor { return systemd{l, systemManager{}} }

func unitName(name string) string { return "nox-" + name + ".service" }

func (s systemd) unit(name string) string { return filepath.Join(s.layout.UnitDir(), unitName(name)) }

// link is what enables the unit, as `systemctl enable` would make it.
func (s systemd) link(name string) string {
	return filepath.Join(s.layout.UnitDir(), "multi-user.target.wants", unitName(name))
}

func (s systemd) text(name string) []byte {
	return fmt.Appendf(nil, unitText, name, s.layout.State(), s.layout.Launcher())
}

// Look implements Supervisor.
func (s systemd) Look(name string) (Place, error) {
	enabled := exists(s.link(name))
	fi, err := os.Lstat(s.unit(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.elsewhere(name), nil
	case err != nil:
		return Place{}, err
	case !fi.Mode().IsRegular():
		what := "is no regular file"
		if target, err := os.Readlink(s.unit(name)); err == nil {
			what = "is a link to " + target
		}
		return foreign(Unit{Enabled: enabled, What: what}, unitName(name)+" "+what), nil
	}
	f, err := os.Open(s.unit(name))
	if err != nil {
		return Place{}, err
	}
	defer f.Close()
	got, err := io.ReadAll(io.LimitReader(f, maxUnit))
	if err != nil {
		return Place{}, err
	}
	if !bytes.HasPrefix(got, []byte(marker)) {
		return foreign(Unit{Content: got, Enabled: enabled}, unitName(name)+" is somebody else's"), nil
	}
	p := Place{Exists: true}
	if !bytes.Equal(got, s.text(name)) {
		p.Differences = append(p.Differences, "unit content")
	}
	if !enabled {
		p.Differences = append(p.Differences, "not started at boot")
	}
	return p, nil
}

// elsewhere looks for a unit of that name that ours would hide
// (systemd.unit(5), unit file load path).
func (s systemd) elsewhere(name string) Place {
	for _, dir := range []string{"/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"} {
		if path := filepath.Join(dir, unitName(name)); exists(s.layout.Path(path)) {
			return foreign(Unit{What: "is " + path}, unitName(name)+" is "+path)
		}
	}
	return Place{Differences: []string{"no unit"}}
}

func foreign(u Unit, how string) Place {
	return Place{Exists: true, Foreign: &u, Differences: []string{how}}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Ensure implements Supervisor. The unit is reloaded when systemd does not
// know it as it is, so also when the last host was killed before it could.
func (s systemd) Ensure(ctx context.Context, name string) error {
	same, err := written(s.unit(name), s.text(name))
	if err != nil {
		return err
	}
	if !same {
		if err := durable.WriteFile(s.unit(name), s.text(name), 0o644); err != nil {
			return err
		}
	}
	if err := s.enable(name); err != nil {
		return err
	}
	return s.refresh(ctx, name, !same)
}

func (s systemd) enable(name string) error {
	if exists(s.link(name)) {
		return nil
	}
	if err := durable.MkdirAll(filepath.Dir(s.link(name)), 0o755); err != nil {
		return err
	}
	d, err := durable.OpenDir(filepath.Dir(s.link(name)))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Symlink(filepath.Base(s.link(name)), s.unit(name), durable.Perm(0))
}

func (s systemd) refresh(ctx context.Context, name string, changed bool) error {
	if !changed {
		stale, err := s.manager.stale(ctx, unitName(name))
		if err != nil || !stale {
			return err
		}
	}
	return s.manager.reload(ctx)
}

// Start implements Supervisor.
func (s systemd) Start(ctx context.Context, name string) error {
	return s.manager.start(ctx, unitName(name))
}

// Stop implements Supervisor.
func (s systemd) Stop(ctx context.Context, name string) error {
	return s.manager.stop(ctx, unitName(name))
}

// Forget implements Supervisor.
func (s systemd) Forget(ctx context.Context, name string) error {
	was := exists(s.unit(name)) || exists(s.link(name))
	for _, path := range []string{s.link(name), s.unit(name)} {
		temp := filepath.Join(filepath.Dir(path), durable.TempName(filepath.Base(path)))
		if err := durable.Remove(temp); err != nil { // of an Ensure that was killed
			return err
		}
		if err := durable.Remove(path); err != nil {
			return err
		}
	}
	if was {
		return s.manager.reload(ctx)
	}
	return nil
}

// Restore implements Supervisor. A unit of another directory is back by itself
// now that ours is gone.
func (s systemd) Restore(ctx context.Context, name string, unit Unit) error {
	if unit.Content != nil {
		if err := durable.WriteFile(s.unit(name), unit.Content, 0o644); err != nil {
			return err
		}
	} else if target, ok := strings.CutPrefix(unit.What, "is a link to "); ok {
		d, err := durable.OpenDir(s.layout.UnitDir())
		if err != nil {
			return err
		}
		defer d.Close()
		if err := d.Symlink(unitName(name), target, durable.Perm(0)); err != nil {
			return err
		}
	}
	if unit.Enabled {
		if err := s.enable(name); err != nil {
			return err
		}
	}
	if err := s.manager.reload(ctx); err != nil || !unit.Enabled {
		return err
	}
	return s.manager.start(ctx, unitName(name))
}
