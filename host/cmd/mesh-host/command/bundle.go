package command

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/progress"
)

func (p *program) bundle() *cobra.Command {
	c := &cobra.Command{
		Use:   "bundle",
		Short: "Look at bundles",
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		p.readBundle("inspect FILE", "Say who signed a bundle and what it holds; reads its head only",
			"  mesh-host bundle inspect nox-mesh-1.0.0-linux-x86_64.bundle.tar",
			func(ctx context.Context, r io.Reader, _ string, policy *trust.Policy) (*bundle.Info, error) {
				return bundle.Inspect(ctx, r, policy)
			}),
		p.readBundle("verify FILE", "Verify a whole bundle, and store nothing",
			"  mesh-host bundle verify nox-mesh-1.0.0-linux-x86_64.bundle.tar",
			func(ctx context.Context, r io.Reader, name string, policy *trust.Policy) (*bundle.Info, error) {
				show, shown := p.reading(name)
				defer shown()
				return bundle.Read(ctx, r, bundle.Options{Policy: policy, Progress: show})
			}),
	)
	return c
}

func (p *program) readBundle(use, short, example string, read func(context.Context, io.Reader, string, *trust.Policy) (*bundle.Info, error)) *cobra.Command {
	var o service.Override
	c := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			policy, err := p.policy(o)
			if err != nil {
				return err
			}
			in, done, err := p.open(c.Context(), args[0])
			if err != nil {
				return fmt.Errorf("cannot open bundle %q: %w", args[0], err)
			}
			defer done()
			info, err := read(c.Context(), in, args[0], policy)
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

// printBundle says what a bundle is, who signed it, and what it holds.
func (p *program) printBundle(i *bundle.Info) error {
	of := fmt.Sprintf("counter %d, made %s", i.Counter, i.Created.UTC().Format("2006-01-02 15:04:05Z"))
	if i.MinimumHost != "" {
		of += ", needs mesh-host " + i.MinimumHost + " or newer"
	}
	fmt.Fprintf(p.std.Out, "%s %s for %s, %s\n%s\n", i.Name, i.Version, i.Architecture, of, i.Digest)
	for _, s := range i.Signers {
		fmt.Fprintf(p.std.Out, "signed by %s\n", signedBy([]trust.Signer{s}))
	}
	fmt.Fprintf(p.std.Out, "%s, %s of content\n\n", cli.Count(len(i.Declarations), "declaration", "declarations"), progress.Bytes(i.Size))
	var rows [][]string
	for _, m := range i.Members {
		kind := m.Kind()
		if m.Content != "" {
			kind += " of " + progress.Bytes(m.ContentSize)
		}
		rows = append(rows, []string{cmp.Or(m.Title, "-"), progress.Bytes(m.Size), kind, m.Digest.String()})
	}
	return cli.Table(p.std.Out, []string{"MEMBER", "SIZE", "KIND", "DIGEST"}, rows)
}
