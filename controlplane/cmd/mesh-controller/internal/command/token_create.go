package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (a *app) tokenCreate() *cobra.Command {
	var o admission.TokenOptions
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it, once",
		Long: `Make a token and print it, alone, on standard output. It is printed now and never
again; the control plane keeps only what it needs to check it.

The token names the addresses of "mesh-controller address list". A control
plane that is only just starting is waited for.

With --rejoin NODE a machine that lost its identity becomes the node that it was: it
gets its name, tags, modules and history, and what it owned. The credential that the
node had ends when the token is used.`,
		Example: `  mesh-controller token create | sudo mesh-host enrol -
  mesh-controller token create --ttl 24h --uses 20 --name 'web-*' --tag web
  mesh-controller token create --pending > token
  mesh-controller token create --rejoin web1 | ssh web1 sudo mesh-host enrol -`,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			if err := cl.Wait(c.Context(), a.wait); err != nil {
				return err
			}
			return ask(c.Context(), a, admin.TokenCreate.Ask, o, func(t admin.TokenMade) error {
				if a.verbose {
					a.say("token %q is good for %s, until %s", t.ID, cli.Count(t.Uses, "use", "uses"), t.Expires.Format(time.RFC3339))
				}
				_, err := fmt.Fprintln(a.std.Out, t.Token)
				return err
			})
		},
	}
	f := c.Flags()
	f.DurationVar(&o.TTL, "ttl", time.Hour, "how long it is good, at most 168h")
	f.IntVar(&o.Uses, "uses", 1, "how many machines may enrol with it")
	f.StringVar(&o.Name, "name", "", "the node's name, or a `PATTERN` its hostname must match")
	f.StringArrayVar(&o.Tags, "tag", nil, "a `TAG` for its nodes (may be repeated)")
	f.BoolVar(&o.Pending, "pending", false, "let a person admit each machine")
	f.StringVar(&o.Rejoin, "rejoin", "", "let a machine become the `NODE` that it was")
	return c
}
