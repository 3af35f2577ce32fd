package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/repository"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func (a *app) join() *cobra.Command {
	var q admin.Joining
	c := &cobra.Command{
		Use:   "join",
		Short: "Say what to type on the next machine",
		Long: `Say what to type on the next machine to install its host from this control plane,
with no other network: the tarball, whose digest is in the command, or the package,
whose key is told by its fingerprint. Then the machine enrols with a token, which is
not printed here.

The control plane serves both by plain HTTP when /etc/nox-mesh/controller.toml has

  repository_listen = "[::]:7480"

What it says of itself is verified before it is printed, by what this machine trusts.
The digest and the fingerprint protect the next machine as well as the road by which
what is printed comes there.`,
		Example: `  mesh-controller join
  mesh-controller join --arch aarch64 --address mesh.example.com
  mesh-controller join --json`,
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := a.way(c, q)
			if err != nil {
				return err
			}
			if a.json {
				return cli.JSON(a.std.Out, w)
			}
			return a.printWay(w)
		},
	}
	c.Flags().StringVar(&q.Architecture, "arch", "", "the next machine's architecture, `ARCH` as uname -m says it (default: this machine's)")
	c.Flags().StringVar(&q.Address, "address", "", "where the next machine reaches this one, `HOST` or HOST:PORT (default: as \"address list\")")
	return c
}

// way asks how, and believes what is signed.
func (a *app) way(c *cobra.Command, q admin.Joining) (w repository.Way, err error) {
	cl, err := a.client()
	if err != nil {
		return w, err
	}
	l, err := layout.New(a.root)
	if err != nil {
		return w, err
	}
	answer, err := admin.Join.Ask(c.Context(), cl, q)
	if err != nil {
		return w, err
	}
	machine, err := trust.Machine(l)
	if err != nil {
		return w, err
	}
	list, err := answer.Believe(machine)
	if err != nil {
		return w, fmt.Errorf("cannot believe what the control plane serves: %w", err)
	}
	return repository.WayBy(list, answer.Addresses), nil
}

func (a *app) printWay(w repository.Way) error {
	also := ""
	if len(w.Others) > 0 {
		also = "\n(it is also at " + strings.Join(w.Others, ", ") + ": --address HOST)"
	}
	_, err := fmt.Fprintf(a.std.Out, `On the next machine, release %s for %s from %s%s

either the tarball, on any Linux:

  %s

or the package, with pacman. Take the key %s:

  %s

add these lines to /etc/pacman.conf:

  %s

and install:

  %s

Then make a token here:

  %s

and paste it there:

  %s
`, w.Version, w.Architecture, w.Address, also, w.Floor.Command, w.Pacman.Fingerprint, w.Pacman.Trust,
		strings.Join(w.Pacman.Lines, "\n  "), w.Pacman.Install, w.Token, w.Enrol)
	return err
}
