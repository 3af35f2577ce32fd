package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/progress"
)

func (p *program) bundleInspectCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what a bundle holds and who signed it",
		Long: "Show what a bundle holds and who signed it. Only the beginning is read; whether\n" +
			"the content is whole is for \"mesh-release verify\" to say.",
		Example: "  mesh-release bundle inspect --trust keys nox-mesh.bundle.tar",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if dir == "" {
				return fault.Usagef("cannot inspect: nobody is trusted").Hint("give --trust DIR")
			}
			policy, err := trust.LoadDir(dir)
			if err != nil {
				return err
			}
			f, done, err := input.Open(c.Context(), args[0], p.std.In)
			if err != nil {
				return fmt.Errorf("cannot inspect bundle %q: %w", args[0], err)
			}
			defer done()
			info, err := bundle.Inspect(c.Context(), f, policy)
			if err != nil {
				return fmt.Errorf("cannot inspect bundle %q: %w", args[0], err)
			}
			if p.json {
				return cli.JSON(p.std.Out, info)
			}
			fmt.Fprintf(p.std.Out, "%s %s for %s, counter %d\n%s\n", info.Name, info.Version, info.Architecture, info.Counter, info.Digest)
			for _, k := range info.Signers {
				fmt.Fprintf(p.std.Out, "signed by %s\n", signedBy(k))
			}
			fmt.Fprintf(p.std.Out, "%s, %s of content\n\n",
				cli.Count(len(info.Declarations), "declaration", "declarations"), progress.Bytes(info.Size))
			return cli.Table(p.std.Out, []string{"TITLE", "SIZE", "TYPE", "DIGEST"}, memberRows(info))
		},
	}
	c.Flags().StringVar(&dir, "trust", "", "directory of release roots and public keys")
	return c
}
