package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/pack"
	"github.com/nox-mesh/nox-mesh/release/internal/recipe"
)

func (p *program) bundleCreateCommand() *cobra.Command {
	var out, version, arch string
	var files []string
	var counter uint64
	c := &cobra.Command{
		Use:   "create RECIPE",
		Short: "Make a bundle from a recipe",
		Long: "Make a signed bundle from a recipe (bundle.toml). The counter must grow with each\n" +
			"bundle of one name: a machine takes none with a lower one.",
		Example: "  mesh-release bundle create web/bundle.toml --counter 12 --keys keys --out web.bundle.tar",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" || counter == 0 {
				return fault.Usagef("cannot make a bundle: --out and --counter are needed")
			}
			paths := map[string]string{}
			for _, f := range files {
				title, path, ok := strings.Cut(f, "=")
				if !ok || title == "" || path == "" {
					return fault.Usagef("cannot make a bundle: --file %q is not TITLE=PATH", f)
				}
				paths[title] = path
			}
			r, err := recipe.Read(args[0])
			if err != nil {
				return err
			}
			if err := r.Fill(version, arch, paths); err != nil {
				return err
			}
			s, err := p.signer()
			if err != nil {
				return err
			}
			info, err := pack.Bundle(c.Context(), s, r, counter, out)
			if err != nil {
				return err
			}
			if p.json {
				return cli.JSON(p.std.Out, info)
			}
			_, err = fmt.Fprintf(p.std.Out, "%s: %s %s, %s\n", out, info.Name, info.Version, info.Digest)
			return err
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write")
	c.Flags().StringVar(&version, "version", "", "version, when the recipe says none or another")
	c.Flags().StringVar(&arch, "arch", "", "architecture, when the recipe says none or another")
	c.Flags().StringArrayVar(&files, "file", nil, "TITLE=PATH: the path of a file of the recipe")
	c.Flags().Uint64Var(&counter, "counter", 0, "counter of the bundle; also its time, in seconds since 1970")
	p.signing(c)
	return c
}
