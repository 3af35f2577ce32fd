package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/installer"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

func (p *program) install() *cobra.Command {
	o := installer.Options{}
	c := &cobra.Command{
		Use:   "install",
		Short: "Install the host from the unpacked tarball this binary lies in",
		Long: `Install the host from the unpacked tarball this binary lies in: the binary, its
unit, its state directory, its configuration, and the chain of release roots.
Where systemd runs, the service is enabled and started.

Every file is checked against the tarball's signed manifest before the machine
is touched. Running it again changes nothing; running that of a newer tarball
is the upgrade.`,
		Example: "  curl -fsSL https://example.org/nox-mesh-host-1.0.0-linux-x86_64.tar.gz | tar -xz\n  sudo ./nox-mesh-host-1.0.0/mesh-host install",
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.layout()
			if err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("cannot find the tarball's folder: %w", err)
			}
			o.Layout, o.From, o.Pass = l, filepath.Dir(self), asker{p}
			if _, err := os.Stat(filepath.Join(o.From, pkgbuild.ManifestName)); errors.Is(err, fs.ErrNotExist) {
				return fault.Usagef("cannot install: %q does not lie in an unpacked tarball", self).
					Hint("run the mesh-host of the tarball: ./nox-mesh-host-VERSION/mesh-host install")
			}
			if !p.quiet && !p.json {
				o.Out = p.std.Err
			}
			s, err := installer.Install(c.Context(), o)
			if err != nil {
				return err
			}
			return p.print(s, func() error { return p.printInstalled(s) })
		},
	}
	f := c.Flags()
	f.StringVar(&o.Prefix, "prefix", layout.FloorPrefix, "install the software under this `DIR`")
	f.BoolVar(&o.NoStart, "no-start", false, "neither enable nor start the service")
	f.BoolVar(&o.AllowOlder, "allow-older", false, "install a tarball that is older than what is installed")
	f.StringVar(&o.ExpectRoot, "expect-root", "", "refuse a release root that has not this `SHA256`")
	return c
}

func (p *program) printInstalled(s installer.Summary) error {
	if p.quiet {
		return nil
	}
	if len(s.Changed) == 0 {
		fmt.Fprintf(p.std.Out, "mesh-host %s was installed already\n", s.Version)
	} else {
		fmt.Fprintf(p.std.Out, "mesh-host %s is installed as %s\n", s.Version, s.Binary)
	}
	for _, k := range s.Kept {
		fmt.Fprintf(p.std.Out, "kept as you changed it: %s\n", k)
	}
	if s.Service == "none" {
		run := p.started(s.Binary)
		fmt.Fprintf(p.std.Out, "no service manager starts it here: keep %q running yourself\n", run)
	}
	return nil
}

// started is the command that runs the host that was installed.
func (p *program) started(binary string) string {
	l, err := p.layout()
	if err != nil || l.IsMachine() {
		return binary + " run"
	}
	return l.Path(binary) + " run --root " + l.Root
}

func (p *program) uninstall() *cobra.Command {
	o := installer.UninstallOptions{}
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Take the host away again",
		Long: `Take away exactly what install laid down. What a person changed stays, and so
does the host's state unless --purge.

While the host owns resources it is refused: they would stay with nobody to
look after them. On a machine that is in no mesh, apply a declaration without
resources first. A node takes none but its mesh's: undeclare there what is
declared for it ("mesh-controller undeclare"). Or say --keep-resources.`,
		Example: "  mesh-host uninstall\n  mesh-host uninstall --keep-resources",
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.layout()
			if err != nil {
				return err
			}
			o.Layout, o.Owner = l, asker{p}
			s, err := installer.Uninstall(c.Context(), o)
			if err != nil {
				return err
			}
			return p.print(s, func() error {
				var rows [][]string
				for _, f := range s.Removed {
					rows = append(rows, []string{"removed", f})
				}
				for _, f := range s.Kept {
					rows = append(rows, []string{"kept", f})
				}
				if err := cli.Table(p.std.Out, []string{"WHAT", "PATH"}, rows); err != nil || o.Purge {
					return err
				}
				_, err := fmt.Fprintln(p.std.Out, "the host's state stays; mesh-host uninstall --purge takes it away as well")
				return err
			})
		},
	}
	c.Flags().BoolVar(&o.KeepResources, "keep-resources", false, "leave what the host owns on the machine, unmanaged")
	c.Flags().BoolVar(&o.Purge, "purge", false, "take the state away as well: store, identity, content")
	return c
}

// asker asks the host what the installer must know of it.
type asker struct{ p *program }

// Owns implements installer.Owner.
func (a asker) Owns(ctx context.Context) (n int, err error) {
	err = a.p.ask(ctx, func(h service.Host) error {
		list, err := h.Owned(ctx)
		n = len(list)
		return err
	})
	return n, err
}

// Pass implements installer.Passer.
func (a asker) Pass(ctx context.Context) error {
	return a.p.ask(ctx, func(h service.Host) error {
		_, err := h.Pass(ctx)
		return err
	})
}
