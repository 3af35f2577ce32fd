package command

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/progress"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

func (p *program) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say what state this machine is in, and what is wrong",
		Long: `Say what state this machine is in, and what is wrong. Each owned resource is
looked at now.

It exits 0 whatever it finds, and otherwise only when nobody could be asked. A
program finds in --json what is wrong: "off" are the resources that are not as
declared, with "since" when and in how many passes in a row ("times"), and
"warnings" are for a person.`,
		Example: "  mesh-host status\n  mesh-host status --json",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.ask(c.Context(), func(h service.Host) error {
				st, err := h.Status(c.Context())
				if err != nil {
					return err
				}
				st.Warnings = append(st.Warnings, p.twice()...)
				return p.print(st, func() error { return p.printStatus(st) })
			})
		},
	}
}

// printStatus prints what there is to know, each on its line, and then what is
// wrong, the worst first.
func (p *program) printStatus(st service.Status) error {
	w := tabwriter.NewWriter(p.std.Out, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, cli.OneLine(fmt.Sprintf(format, args...)))
	}
	now := clock.System.Now()
	line("state", "%s%s", st.State, verdict(st))
	if st.Mesh != "" {
		line("node", "%s (%s) of mesh %s", st.Node, st.NodeID, st.Mesh)
	}
	if said := linkLine(now, st); said != "" {
		line("link", "%s", said)
	}
	switch {
	case !st.Running:
		line("host", "%s, not running: nothing is put right until it is; %s", st.Version, p.toStart())
	case st.Since.IsZero():
		line("host", "%s, running", st.Version)
	default:
		line("host", "%s, running for %s", st.Version, cli.Span(now.Sub(st.Since)))
	}
	if st.Installed != "" {
		line("installed", "%s", st.Installed)
	}
	if d := st.Declaration; d == nil {
		line("declaration", "none yet")
	} else {
		line("declaration", "%s, from %s, %s", d.Name, origin(d), cli.Ago(now, d.At))
	}
	line("resources", "%d owned, %s", st.Owned, offLine(st.Off))
	line("content", "%s, %s", cli.Count(st.Content.Blobs, "blob", "blobs"), progress.Bytes(st.Content.Bytes))
	if r := st.Last; r != nil {
		line("last pass", "%s (%s), took %s", cli.Ago(now, r.Finished), strings.ReplaceAll(r.Trigger, "+", " and "), took(r.Finished.Sub(r.Started)))
	}
	if b := st.Busy; b != nil {
		line("busy", "with %s for %s", b.Key, cli.Span(time.Duration(b.Seconds)*time.Second))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range st.Warnings {
		fmt.Fprintf(p.std.Out, "\nwarning: %s\n", cli.OneLine(s))
	}
	p.printOff(now, st.Off)
	return nil
}

// verdict is what is wrong, in a few words.
func verdict(st service.Status) string {
	said := ""
	if st.Link != nil && st.Link.Revoked != "" {
		said += ", revoked"
	}
	if n := len(st.Off); n > 0 {
		said += ", " + cli.Count(n, "resource is", "resources are") + " not as declared"
	}
	if n := len(st.Warnings); n > 0 {
		said += ", " + cli.Count(n, "warning", "warnings")
	}
	return said
}

func linkLine(now time.Time, st service.Status) string {
	switch l := st.Link; {
	case l == nil && st.Mesh != "":
		return "not held: the service is not running"
	case l == nil:
		return ""
	case l.Revoked != "":
		return fmt.Sprintf("revoked: %s; a new token makes it a node again: mesh-host enrol -", l.Revoked)
	case l.Connected:
		return fmt.Sprintf("up for %s, to %s", cli.Span(now.Sub(l.Since)), l.Address)
	case l.Error == "":
		return "down: it is being tried for the first time"
	case l.Since.IsZero():
		return "down: " + l.Error
	default:
		return fmt.Sprintf("down for %s: %s", cli.Span(now.Sub(l.Since)), l.Error)
	}
}

// toStart is what starts the service.
func (p *program) toStart() string {
	l, err := p.layout()
	if err == nil && !l.IsMachine() {
		return "mesh-host run --root " + fault.Word(l.Root)
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil { // sd_booted(3)
		for _, prefix := range l.Prefixes() {
			if binary := l.HostBinary(prefix); isThere(binary) {
				return pkgbuild.LauncherPath + " launch " + binary
			}
		}
		return "mesh-host run"
	}
	return "systemctl start mesh-host"
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func took(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return cli.Span(d)
}

// origin says where a declaration came from.
func origin(d *store.Wanted) string {
	if d.Source == store.SourceRetire {
		return "the retirement of this machine"
	}
	if d.Source == store.SourceLink {
		return fmt.Sprintf("the mesh (epoch %d, generation %d)", d.Epoch, d.Generation)
	}
	return fmt.Sprintf("a %s (generation %d)", d.Source, d.Generation)
}
