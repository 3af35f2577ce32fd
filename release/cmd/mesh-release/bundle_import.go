package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func (p *program) bundleImportCommand() *cobra.Command {
	var out, dir string
	c := &cobra.Command{
		Use:   "import LAYOUT[:REF]",
		Short: "Make the file of a bundle that lies in an image layout",
		Long: `Write the file of a bundle again from LAYOUT, a directory that is an OCI image
layout: what "oras cp -r" brings back from a registry, what a bundle is when it was
unpacked, or a machine's content store. REF is the bundle's name there or its
digest; it may be left out where there is but one.

No secret key is needed: signatures and release roots are those that lie there and
have the bundle as their subject. The bundle must verify under --trust. One that
was not signed again meanwhile becomes the file that it was, to the byte.`,
		Example: "  oras cp -r registry.example/site:1 --to-oci-layout site:bundle\n" +
			"  mesh-release bundle import site:bundle --trust public --out site.bundle.tar",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if dir == "" || out == "" {
				return fault.Usagef("cannot import: --trust and --out are needed")
			}
			policy, err := trusted(dir)
			if err != nil {
				return err
			}
			layout, ref := located(args[0])
			told, shown := p.telling(out)
			done, err := bundle.Import(c.Context(), layout, ref, out, bundle.Importing{Policy: policy, Progress: told})
			shown()
			if err != nil {
				return err
			}
			if done.LeftOut > 0 {
				p.note(cli.Count(done.LeftOut, "thing", "things") + " in the layout that others put to the bundle left out")
			}
			if p.json {
				return cli.JSON(p.std.Out, done)
			}
			return p.sayBundle(out, done.Info)
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write")
	c.Flags().StringVar(&dir, "trust", "", "directory of release roots and public keys that the bundle must verify under")
	return c
}

// located takes LAYOUT[:REF] or LAYOUT@DIGEST apart. What is a directory as it
// stands is one.
func located(arg string) (layout, ref string) {
	if fi, err := os.Stat(arg); err == nil && fi.IsDir() {
		return arg, ""
	}
	if at := strings.LastIndex(arg, "@sha256:"); at > 0 {
		return arg[:at], arg[at+1:]
	}
	if at := strings.LastIndex(arg, ":"); at > 0 && !strings.Contains(arg[at:], "/") {
		return arg[:at], arg[at+1:]
	}
	return arg, ""
}

// sayBundle tells of a bundle that was made.
func (p *program) sayBundle(out string, info *bundle.Info) error {
	return p.say("%s: %s %s, %s", out, info.Name, info.Version, info.Digest)
}
