package main

import (
	"context"
	"crypto"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
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
			info, err := s.bundle(c.Context(), r, counter, out)
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

// bundle builds the bundle of a filled recipe. Its counter is its time as well:
// nothing of a bundle may depend on when it was built.
func (s *signer) bundle(ctx context.Context, r *recipe.Recipe, counter uint64, out string) (*bundle.Info, error) {
	if counter > maxCounter {
		return nil, fault.Usagef("cannot make a bundle: the counter %d is above %d", counter, uint64(maxCounter))
	}
	spec, err := r.Spec(counter)
	if err != nil {
		return nil, err
	}
	spec.Created = time.Unix(int64(counter), 0).UTC()
	spec.Roots = s.roots
	spec.Signers = []crypto.Signer{s.key}
	return bundle.Build(ctx, out, spec)
}
