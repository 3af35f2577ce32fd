package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (p *program) bundle() *cobra.Command {
	c := &cobra.Command{
		Use:   "bundle",
		Short: "Look at bundles",
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		p.readBundle("inspect FILE", "Say who signed a bundle and what it holds; reads its head only",
			"  mesh-host bundle inspect nox-mesh-1.0.0-linux-x86_64.bundle.tar", bundle.Inspect),
		p.readBundle("verify FILE", "Verify a whole bundle, and store nothing",
			"  mesh-host bundle verify nox-mesh-1.0.0-linux-x86_64.bundle.tar",
			func(ctx context.Context, r io.Reader, policy *trust.Policy) (*bundle.Info, error) {
				return bundle.Read(ctx, r, bundle.Options{Policy: policy})
			}),
	)
	return c
}

func (p *program) readBundle(use, short, example string, read func(context.Context, io.Reader, *trust.Policy) (*bundle.Info, error)) *cobra.Command {
	var o service.Override
	c := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			policy, err := p.policy(o)
			if err != nil {
				return err
			}
			in, done, err := p.open(args[0])
			if err != nil {
				return fmt.Errorf("cannot open bundle %q: %w", args[0], err)
			}
			defer done()
			info, err := read(c.Context(), in, policy)
			if err != nil {
				return fmt.Errorf("cannot verify %q: %w", args[0], err)
			}
			return p.print(info, func() error { return p.printBundle(info) })
		},
	}
	trustFlags(c, &o)
	return c
}

// policy is what this machine trusts, or what was named.
func (p *program) policy(o service.Override) (*trust.Policy, error) {
	l, err := p.layout()
	if err != nil {
		return nil, err
	}
	return service.Policy(l, o)
}

func (p *program) printBundle(i *bundle.Info) error {
	fmt.Fprintf(p.std.Out, "%s %s for %s, counter %d, made %s\n%s\nsigned by %s\n\n", i.Name, i.Version, i.Architecture, i.Counter,
		i.Created.UTC().Format("2006-01-02 15:04:05Z"), i.Digest, signedBy(i.Signers))
	var rows [][]string
	for _, m := range i.Members {
		rows = append(rows, []string{m.Title, fmt.Sprint(m.Size), m.Digest.String()})
	}
	return cli.Table(p.std.Out, []string{"MEMBER", "BYTES", "DIGEST"}, rows)
}
