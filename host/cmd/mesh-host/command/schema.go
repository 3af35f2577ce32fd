package command

import (
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

func (p *program) schema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a declaration",
		Long: "Print the JSON Schema (2020-12) of a declaration, for an editor or a program that\n" +
			"writes one. \"mesh-host plan FILE\" checks more: names that are there twice, circles,\n" +
			"and what is the host's own.",
		Example: "  mesh-host schema > declaration.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := p.std.Out.Write(declaration.JSONSchema())
			return err
		},
	}
}
