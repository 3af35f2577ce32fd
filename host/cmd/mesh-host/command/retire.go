package command

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func (p *program) retire() *cobra.Command {
	var r service.RetireRequest
	var ask agreement
	last := false
	c := &cobra.Command{
		Use:   "retire",
		Short: "Take away what the host owns, and leave the mesh",
		Long: `Take away what the host owns on this machine, tell the control plane, and forget
who this node is. The host stays, and knows no mesh any more; "mesh-host
uninstall" takes it away as well.

It needs no control plane: one that is gone for ever is told nothing. On the
control plane "mesh-controller show NODE" has the last report.

It shows what goes and asks; a script says --yes. --dry-run only shows it. From
then on nothing that the mesh declares is taken. What cannot be taken away is
named, and the machine stays a node until it is gone (exit code 4): put right
what is said and run it again, or leave it with --force. Killed half way, it is
run again.`,
		Example: "  mesh-host retire --dry-run\n  mesh-host retire\n  mesh-host retire --yes --keep-resources",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := ask.possible(p, "retire this machine"); err != nil {
				return err
			}
			return p.ask(c.Context(), func(h service.Host) error {
				plan := r
				plan.DryRun = true
				goes, err := h.Retire(c.Context(), plan)
				if err != nil {
					return fmt.Errorf("cannot retire: %w", err)
				}
				if ask.dryRun {
					return p.print(goes, func() error { return p.printRetiring(goes) })
				}
				if err := p.mayRetire(goes, last); err != nil {
					return err
				}
				if !ask.yes {
					if err := p.printRetiring(goes); err != nil {
						return err
					}
					if err := ask.ask(c.Context(), p, "retire this machine?"); err != nil {
						return err
					}
				}
				return p.retired(c.Context(), h, r)
			})
		},
	}
	f := c.Flags()
	f.BoolVar(&r.KeepResources, "keep-resources", false, "leave what the host owns on the machine, unmanaged")
	f.BoolVar(&r.Force, "force", false, "leave the mesh even if something cannot be taken away")
	f.BoolVar(&last, "last", false, "retire the machine of the control plane: its mesh ends with it")
	ask.flags(c)
	return c
}

// mayRetire refuses what ends a mesh, unless that is meant.
func (p *program) mayRetire(goes service.Retired, last bool) error {
	l, err := p.layout()
	if err != nil || last {
		return err
	}
	if _, err := os.Lstat(l.ControllerState()); err != nil {
		return nil
	}
	for _, s := range goes.Steps {
		if w := warning(s); w != "" {
			return fault.Refusedf("cannot retire: it would remove %s: %s", s.Key, w).
				Hint("retire the other nodes first; then say --last")
		}
	}
	return nil
}

func (p *program) printRetiring(r service.Retired) error {
	var rows [][]string
	for _, s := range r.Steps {
		note := s.Note
		if s.Error != "" {
			note = s.Error
		}
		rows = append(rows, []string{string(s.Action), s.Key, note})
	}
	if len(rows) == 0 {
		fmt.Fprintln(p.std.Out, "the host owns nothing on this machine")
	} else if err := cli.Table(p.std.Out, []string{"ACTION", "RESOURCE", "NOTE"}, rows); err != nil {
		return err
	}
	if r.Mesh != "" {
		fmt.Fprintf(p.std.Out, "node %s leaves mesh %s\n", r.Node, r.Mesh)
	}
	return nil
}

// retired retires the machine and says what became of it.
func (p *program) retired(ctx context.Context, h service.Host, r service.RetireRequest) error {
	out, err := h.Retire(ctx, r)
	if err != nil {
		return fmt.Errorf("cannot retire: %w", err)
	}
	if err := p.print(out, func() error { return p.printRetired(out) }); err != nil {
		return err
	}
	if len(out.Left) == 0 {
		return nil
	}
	left := fault.Partialf("%d of what the host owns could not be taken away: %s", len(out.Left), strings.Join(out.Left, ", "))
	if out.Forgotten {
		return left.Hint("mesh-host status says why")
	}
	return left.Hint("put right what mesh-host status says and run it again; --force leaves it, --keep-resources leaves all")
}

func (p *program) printRetired(r service.Retired) error {
	if p.quiet {
		return nil
	}
	var rows [][]string
	for _, x := range r.Resources {
		rows = append(rows, []string{string(x.Outcome), x.Key, said(x)})
	}
	if len(rows) > 0 {
		if err := cli.Table(p.std.Out, []string{"OUTCOME", "RESOURCE", "NOTE"}, rows); err != nil {
			return err
		}
	}
	switch {
	case !r.Forgotten:
		_, err := fmt.Fprintf(p.std.Out, "this machine is still node %s of mesh %s\n", r.Node, r.Mesh)
		return err
	case r.Mesh == "":
		_, err := fmt.Fprintln(p.std.Out, "this machine is in no mesh")
		return err
	case r.Told:
		_, err := fmt.Fprintf(p.std.Out, "this machine left mesh %s, and the control plane knows\n", r.Mesh)
		return err
	}
	_, err := fmt.Fprintf(p.std.Out, "this machine left mesh %s; the control plane could not be told\n", r.Mesh)
	return err
}
