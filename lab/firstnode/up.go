package firstnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// journeyLimit is far over what the journey takes: seconds.
const journeyLimit = 5 * time.Minute

// Up makes a release (or takes the one in From) and a first node of it, and leaves that running. When the
// node runs already it shows its status instead, and one whose host has ended is
// started again; what a failed Up left is ended and removed first.
func (n *Node) Up(ctx context.Context) error {
	if m := n.readMark(); m.Raised {
		if m.Host.lives() {
			fmt.Fprintf(n.Std.Out, "the first node is up already (%s makes room for a new one)\n\n", n.DownCommand)
			return n.Status(ctx)
		}
		// It is somebody's mesh by now.
		if err := n.startHost(ctx); err != nil {
			return fault.Failedf("the host of the first node had ended, and cannot be started again: %w", err).
				Hint("look at %s; %s removes the node", n.log(), n.DownCommand)
		}
		if err := n.writeMark(mark{Host: n.host(), Raised: true}); err != nil {
			return err
		}
		fmt.Fprintf(n.Std.Out, "the host of the first node had ended, and is started again (%s makes room for a new one)\n\n", n.DownCommand)
		return n.Status(ctx)
	}
	if err := n.remove(); err != nil {
		return err
	}
	if err := n.claim(); err != nil {
		return err
	}
	err := n.passable()
	if err == nil {
		err = n.up(ctx)
	}
	if err == nil {
		return nil
	}
	f := fault.Failedf("%w", err)
	if n.host().PID != 0 {
		return f.Hint("look at %s, then run %s", n.log(), n.DownCommand)
	}
	if err := n.remove(); err != nil {
		return err
	}
	if fault.RemedyOf(err) != "" {
		return f
	}
	return f.Hint("nothing was started, and nothing is left")
}

func (n *Node) up(ctx context.Context) error {
	fmt.Fprintf(n.Std.Out, "everything is in %s\n\n", n.Dir)
	if n.From == "" {
		compiling, err := n.walk(ctx, "a release", n.releaseSteps())
		if err != nil {
			return err
		}
		fmt.Fprintf(n.Std.Out, "  %-44s %s\n\n", "", seconds(compiling))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, journeyLimit, fmt.Errorf("it takes longer than %s", journeyLimit))
	defer cancel()
	journey, err := n.walk(ctx, "the first node", n.journeySteps())
	if err != nil {
		return err
	}
	if err := n.writeMark(mark{Host: n.host(), Raised: true}); err != nil {
		return err
	}
	fmt.Fprintln(n.Std.Out)
	n.printNext()
	fmt.Fprintf(n.Std.Out, "\nenrolled after %s, without compiling\n", strings.TrimSpace(seconds(journey)))
	return nil
}

// printNext prints commands to copy.
func (n *Node) printNext() {
	root := n.path("root")
	fmt.Fprintf(n.Std.Out, `it runs; look at it:
  %[1]s status --root %[3]s
  %[1]s owned --root %[3]s
  %[2]s nodes --root %[3]s
  %[2]s join --root %[3]s
  tail -f %[4]s
and end it:
  %[5]s
`, n.hostBinary(), n.controllerBinary(), root, n.log(), n.DownCommand)
}

// Status shows what runs, and what the host and the control plane say.
func (n *Node) Status(ctx context.Context) error {
	found, err := running(n.Dir)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fault.Failedf("no first node runs in %q", n.Dir).Hint("run make first-node")
	}
	fmt.Fprintf(n.Std.Out, "processes from %s:\n", n.Dir)
	for _, p := range found {
		fmt.Fprintf(n.Std.Out, "  %7d  %q\n", p.PID, p.arguments())
	}
	for _, ask := range [][]string{{n.hostBinary(), "status"}, {n.controllerBinary(), "nodes"}} {
		out, err := n.run(ctx, nil, ask[0], ask[1], "--root", n.path("root"))
		if err != nil {
			return err
		}
		fmt.Fprintf(n.Std.Out, "\n%s", out)
	}
	fmt.Fprintln(n.Std.Out)
	n.printNext()
	return nil
}

// Down ends the node and removes its folder. That there is none is no fault.
func (n *Node) Down() error {
	if _, err := os.Lstat(n.Dir); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(n.Std.Out, "no first node is in %s\n", n.Dir)
		return nil
	}
	if err := n.remove(); err != nil {
		return err
	}
	fmt.Fprintf(n.Std.Out, "the first node is gone: nothing runs, and %s is removed\n", n.Dir)
	return nil
}

// remove ends all that runs from the folder, and removes it when nothing does
// any more.
func (n *Node) remove() error {
	if err := n.ours(); err != nil {
		return err
	}
	if err := endAll(n.Dir, n.host()); err != nil {
		return err
	}
	entries, err := os.ReadDir(n.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == markName {
			continue // the last: without it the folder is not ours
		}
		if err := os.RemoveAll(n.path(e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(n.Dir)
}
