package main

import "github.com/spf13/cobra"

func (p *program) bundleCommand() *cobra.Command {
	return group("bundle", "Make and inspect bundles", "  mesh-release bundle inspect --trust keys nox-mesh.bundle.tar",
		p.bundleCreateCommand(), p.bundleImportCommand(), p.bundleResignCommand(), p.bundleInspectCommand())
}
