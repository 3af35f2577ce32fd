package installer

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A manager is systemctl; empty where systemd does not run or is not to be
// asked.
type manager string

// findManager returns the service manager of the machine l stands for.
func findManager(l layout.Layout) manager {
	if !l.IsMachine() {
		return ""
	}
	// sd_booted(3)
	if fi, err := os.Lstat("/run/systemd/system"); err != nil || !fi.IsDir() {
		return ""
	}
	for _, p := range []string{"/usr/bin/systemctl", "/bin/systemctl"} {
		if _, err := os.Stat(p); err == nil {
			return manager(p)
		}
	}
	return ""
}

func (m manager) do(ctx context.Context, args ...string) error {
	args = append([]string{"--no-ask-password"}, args...)
	_, err := child.Run(ctx, child.Command{Path: string(m), Args: args, Timeout: 2 * time.Minute})
	return err
}

// start has the unit run, now and after a boot. It does not wait for the job:
// a version that fails at once is put right by the launcher a second later, and
// "systemctl start" would have given up by then.
func (m manager) start(ctx context.Context, reload bool) error {
	if reload {
		if err := m.do(ctx, "daemon-reload"); err != nil {
			return err
		}
	}
	if err := m.do(ctx, "enable", layout.HostUnit); err != nil {
		return err
	}
	return m.do(ctx, "start", "--no-block", layout.HostUnit)
}

// renew has the manager see that the unit lies elsewhere now, and the links that
// enable it lead there. What is not enabled stays so.
func (m manager) renew(ctx context.Context) error {
	if err := m.do(ctx, "daemon-reload"); err != nil {
		return err
	}
	if m.do(ctx, "--quiet", "is-enabled", layout.HostUnit) != nil {
		return nil
	}
	return m.do(ctx, "reenable", layout.HostUnit)
}

// service has the installed host run, where that was asked for.
func (j *job) service(ctx context.Context) error {
	m := findManager(j.o.Layout)
	switch {
	case j.o.NoStart:
		j.summary.Service = "not started"
		if m != "" && j.unitChanged {
			return m.do(ctx, "daemon-reload")
		}
		return nil
	case m == "":
		j.summary.Service = "none"
		return nil
	}
	if err := m.start(ctx, j.unitChanged); err != nil {
		return fmt.Errorf("cannot start the service: %w", err)
	}
	if err := answers(ctx, j.o.Layout.HostSocket(), j.o.Wait); err != nil {
		return err
	}
	j.summary.Service = "started"
	if j.binaryChanged && j.o.Pass != nil {
		if err := j.o.Pass.Pass(ctx); err != nil {
			fmt.Fprintf(j.o.Out, "the running host goes over to version %s at its next pass (%v)\n", j.summary.Version, err)
		}
	}
	return nil
}

// answers waits until whoever listens on the socket at path answers a request,
// whatever it says.
func answers(ctx context.Context, path string, wait time.Duration) error {
	if (&door.Client{Path: path}).Wait(ctx, wait) != nil {
		return fault.Failedf("cannot reach the service: no answer on %q within %s", path, wait).
			Hint("see journalctl -u %s", layout.HostUnit)
	}
	return nil
}
