package command

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/progress"
)

func (p *program) status() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Say what state this machine is in, and what is wrong",
		Example: "  mesh-host status\n  mesh-host status --json",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.ask(c.Context(), func(h service.Host) error {
				st, err := h.Status(c.Context())
				if err != nil {
					return err
				}
				return p.print(st, func() error { return p.printStatus(st) })
			})
		},
	}
}

func (p *program) printStatus(st service.Status) error {
	w := tabwriter.NewWriter(p.std.Out, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, cli.OneLine(fmt.Sprintf(format, args...)))
	}
	now := clock.System.Now()
	line("state", "%s", st.State)
	if st.Mesh != "" {
		line("node", "%s (%s) of mesh %s", st.Node, st.NodeID, st.Mesh)
	}
	switch l := st.Link; {
	case l == nil && st.Mesh != "":
		line("link", "not held: the service is not running")
	case l == nil:
	case l.Revoked != "":
		line("link", "revoked: %s", l.Revoked)
	case l.Connected:
		line("link", "up since %s, to %s", cli.Ago(now, l.Since), l.Address)
	default:
		line("link", "down: %s", l.Error)
	}
	running := "not running"
	if st.Running {
		running = "running"
	}
	line("host", "%s, %s", st.Version, running)
	if d := st.Declaration; d == nil {
		line("declaration", "none yet")
	} else {
		line("declaration", "%s, from %s, %s", d.Name, origin(d), cli.Ago(now, d.At))
	}
	line("resources", "%d owned, %d not as declared", st.Owned, len(st.Off))
	line("content", "%s, %s", cli.Count(st.Content.Blobs, "blob", "blobs"), progress.Bytes(st.Content.Bytes))
	if r := st.Last; r != nil {
		line("last pass", "%s, by %s, took %d ms", cli.Ago(now, r.Finished), strings.ReplaceAll(r.Trigger, "+", " and "), r.Finished.Sub(r.Started).Milliseconds())
	}
	if b := st.Busy; b != nil {
		line("busy", "with %s for %s", b.Key, cli.Span(time.Duration(b.Seconds)*time.Second))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, o := range st.Off {
		fmt.Fprintf(p.std.Out, "\n%s: %s\n  %s\n", o.There, o.Key, cli.OneLine(strings.Join(o.Differences, ", ")))
	}
	for _, s := range st.Warnings {
		fmt.Fprintf(p.std.Out, "\nwarning: %s\n", s)
	}
	return nil
}

// origin says where a declaration came from.
func origin(d *store.Wanted) string {
	if d.Source == store.SourceLink {
		return fmt.Sprintf("the mesh (epoch %d, generation %d)", d.Epoch, d.Generation)
	}
	return fmt.Sprintf("a %s (generation %d)", d.Source, d.Generation)
}
