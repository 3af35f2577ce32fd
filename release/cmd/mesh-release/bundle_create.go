package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/image"
	"github.com/nox-mesh/nox-mesh/release/internal/pack"
	"github.com/nox-mesh/nox-mesh/release/internal/recipe"
)

// A bundleCreation is what was said to "bundle create".
type bundleCreation struct {
	out                     string
	version, arch           string
	files, packages, images []string
	folders                 []string
	counter                 uint64
	dry                     bool
}

func (p *program) bundleCreateCommand() *cobra.Command {
	var b bundleCreation
	c := &cobra.Command{
		Use:   "create RECIPE",
		Short: "Make a bundle from a recipe",
		Long: "Make a signed bundle from a recipe (bundle.toml): its declarations, and the files,\n" +
			"packages and container images they need. The counter must grow with each bundle of\n" +
			"one name: a machine takes none with a lower one.\n\n" +
			"Where an image is, in the recipe and in --image, is written as for skopeo and podman:\n" +
			"  oci:DIR[:TAG]                      an OCI image layout\n" +
			"  oci-archive:FILE[:TAG]             a tar of one\n" +
			"  docker-archive:FILE[:NAME:TAG]     what \"podman save\" and \"docker save\" write\n" +
			"  docker://REGISTRY/NAME@sha256:…    in a registry, with the logins of podman or Docker\n" +
			"Of an image for several platforms, the one for the bundle's architecture is taken.\n\n" +
			"The file is there when it is whole and was read back; nothing of it is before. The\n" +
			"same recipe, contents, counter and key give the same bytes.",
		Example: "  mesh-release bundle create web/bundle.toml --counter 12 --keys keys --out web.bundle.tar\n" +
			"  mesh-release bundle create web/bundle.toml --counter 12 --dry-run\n" +
			"  mesh-release bundle create web/bundle.toml --counter 12 --keys keys --out web.bundle.tar \\\n" +
			"    --version 1.2.0 --arch x86_64 --file tool=build/tool --image web=oci-archive:web.tar",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := b.recipe(args[0])
			if err != nil {
				return err
			}
			if b.dry {
				return p.previewBundle(c.Context(), r, b.counter)
			}
			s, err := p.signer()
			if err != nil {
				return err
			}
			told, shown := p.telling(b.out)
			var notes []string
			info, err := pack.Bundle(c.Context(), s, r, b.counter, b.out, pack.Ears{
				Progress: told, Note: func(text string) { notes = append(notes, text) },
			})
			shown()
			p.notes(notes)
			if err != nil {
				return err
			}
			if p.json {
				return cli.JSON(p.std.Out, info)
			}
			return p.sayBundle(b.out, info)
		},
	}
	c.Flags().StringVar(&b.out, "out", "", "file to write")
	c.Flags().StringVar(&b.version, "version", "", "version, when the recipe says none or another")
	c.Flags().StringVar(&b.arch, "arch", "", "architecture (x86_64, aarch64), when the recipe says none or another")
	c.Flags().StringArrayVar(&b.files, "file", nil, "TITLE=PATH: the path of a file of the recipe")
	c.Flags().StringArrayVar(&b.folders, "folder", nil, "TITLE=DIR: the directory of a folder of the recipe")
	c.Flags().StringArrayVar(&b.packages, "package", nil, "TITLE=PATH: the path of a package of the recipe; its signature is PATH.sig")
	c.Flags().StringArrayVar(&b.images, "image", nil, "TITLE=REF: where an image of the recipe is")
	c.Flags().Uint64Var(&b.counter, "counter", 0, "counter of the bundle; also its time, in seconds since 1970")
	c.Flags().BoolVar(&b.dry, "dry-run", false, "say what would be in the bundle; write nothing, need no key")
	p.signing(c)
	return c
}

// recipe holds what was said and returns the recipe, complete.
func (b *bundleCreation) recipe(path string) (*recipe.Recipe, error) {
	if b.counter == 0 || b.out == "" && !b.dry {
		return nil, fault.Usagef("cannot make a bundle: --out and --counter are needed")
	}
	if err := pack.CheckCounter(b.counter); err != nil {
		return nil, err
	}
	given := recipe.Given{Version: b.version, Architecture: b.arch}
	for _, g := range []struct {
		flag, value string
		given       []string
		to          *map[string]string
	}{
		{"file", "PATH", b.files, &given.Files},
		{"package", "PATH", b.packages, &given.Packages},
		{"image", "REF", b.images, &given.Images},
	} {
		var err error
		if *g.to, err = titled(g.flag, g.value, g.given); err != nil {
			return nil, err
		}
	}
	folders, err := titled("folder", "DIR", b.folders)
	if err != nil {
		return nil, err
	}
	given.Folders = map[string]recipe.Tree{}
	for title, dir := range folders {
		if given.Folders[title], err = recipe.ReadTree(dir); err != nil {
			return nil, err
		}
	}
	r, err := recipe.Read(path)
	if err != nil {
		return nil, err
	}
	return r, r.Fill(given)
}

// titled takes TITLE=VALUE apart.
func titled(flag, value string, given []string) (map[string]string, error) {
	out := map[string]string{}
	for _, g := range given {
		title, v, ok := strings.Cut(g, "=")
		f := fault.Usagef("cannot make a bundle: --%s %q is not TITLE=%s", flag, g, value)
		if flag == "image" {
			f = f.Hint("REF is %s", image.Forms)
		}
		if !ok || title == "" || v == "" {
			return nil, f
		}
		if _, twice := out[title]; twice {
			return nil, fault.Usagef("cannot make a bundle: --%s %q is given twice", flag, title)
		}
		out[title] = v
	}
	return out, nil
}

// previewBundle says what would be in the bundle.
func (p *program) previewBundle(ctx context.Context, r *recipe.Recipe, counter uint64) error {
	told, shown := p.telling(r.Name)
	var notes []string
	info, err := pack.PreviewBundle(ctx, r, counter, pack.Ears{Progress: told, Note: func(text string) { notes = append(notes, text) }})
	shown()
	p.notes(notes)
	if err != nil {
		return err
	}
	if p.json {
		return cli.JSON(p.std.Out, info)
	}
	if _, err := fmt.Fprintf(p.std.Out, "%s %s for %s, counter %d\n%s, not written\n\n",
		info.Name, info.Version, info.Architecture, info.Counter, info.Digest); err != nil {
		return err
	}
	if err := cli.Table(p.std.Out, []string{"TITLE", "SIZE", "TYPE", "DIGEST"}, memberRows(info)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.std.Out, "\n%s, %d bytes\n", cli.Count(len(info.Members), "member", "members"), info.Size)
	return err
}

func memberRows(info *bundle.Info) [][]string {
	var rows [][]string
	for _, m := range info.Members {
		rows = append(rows, []string{m.Title, strconv.FormatInt(m.Size, 10), m.MediaType, m.Digest.String()})
	}
	return rows
}
