package firstnode

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A step is one thing a person would do, timed.
type step struct {
	what string
	do   func(ctx context.Context) error
}

// walk does the steps in order, prints each with its time, and returns the time
// of all.
func (n *Node) walk(ctx context.Context, title string, steps []step) (time.Duration, error) {
	fmt.Fprintf(n.Std.Out, "%s\n", title)
	begin := n.Clock.Now()
	for _, s := range steps {
		// The name first, so that one sees what is waited for.
		fmt.Fprintf(n.Std.Out, "  %-44s", s.what)
		at := n.Clock.Now()
		err := s.do(ctx)
		if err != nil {
			fmt.Fprintln(n.Std.Out, " FAILED")
			return 0, fmt.Errorf("cannot %s: %w", s.what, err)
		}
		fmt.Fprintf(n.Std.Out, " %s\n", seconds(n.Clock.Now().Sub(at)))
	}
	return n.Clock.Now().Sub(begin), nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%7.2f s", d.Seconds()) }

// run runs a program to its end and returns its standard output. When it fails
// all it printed is passed on, as it is.
func (n *Node) run(ctx context.Context, stdin io.Reader, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = cleanEnv()
	cmd.Stdin = stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	fmt.Fprintf(n.Std.Err, "\n$ %s\n%s%s", strings.Join(cmd.Args, " "), out.Bytes(), errOut.Bytes())
	return out.String(), fault.Failedf("%s: %w", filepath.Base(program), err)
}

// onlyMatch returns the one file that the pattern names.
func onlyMatch(pattern string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d files are called %q, not one", len(found), pattern)
	}
	return found[0], nil
}

// until asks again and again what nobody gives notice of.
func until(ctx context.Context, limit time.Duration, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not after %s", limit))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := ask(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
