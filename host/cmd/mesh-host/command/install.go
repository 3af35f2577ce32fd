package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/installer"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

func (p *program) install() *cobra.Command {
	o, handOver := installer.Options{}, false
	c := &cobra.Command{
		Use:   "install",
		Short: "Install the host from the unpacked tarball this binary lies in",
		Long: `Install the host from the unpacked tarball this binary lies in: the binary, its
unit, its state directory, its configuration, and the chain of release roots.
Where systemd runs, the service is enabled and started.

Every file is checked against the tarball's signed manifest before the machine
is touched. Running it again changes nothing; running that of a newer tarball
is the upgrade.

Where a package owns the host, install is refused. With --hand-over it installs
nothing: the tarball's host makes way for the package's, which is what the package
itself asks for when it is installed. State, configuration and what a person
changed stay.`,
		Example: "  curl -fsSL https://example.org/nox-mesh-host-1.0.0-linux-x86_64.tar.gz | tar -xz\n  sudo ./nox-mesh-host-1.0.0/mesh-host install",
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.layout()
			if err != nil {
				return err
			}
			if !p.quiet && !p.json {
				o.Out = p.std.Err
			}
			if handOver {
				return p.handOver(c, l, o.Out)
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
	f.BoolVar(&handOver, "hand-over", false, "install nothing: have the tarball's host make way for the package's")
	for _, other := range []string{"prefix", "no-start", "allow-older", "expect-root"} {
		c.MarkFlagsMutuallyExclusive("hand-over", other)
	}
	return c
}

// handOver is install --hand-over.
func (p *program) handOver(c *cobra.Command, l layout.Layout, out io.Writer) error {
	s, err := installer.HandOver(c.Context(), installer.HandOverOptions{Layout: l, Pass: asker{p}, Out: out})
	if err != nil {
		return err
	}
	return p.print(s, func() error {
		if len(s.Removed) == 0 && !p.quiet {
			fmt.Fprintln(p.std.Out, "nothing of a tarball's is here: the package's host is the only one")
		}
		return nil
	})
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
		fmt.Fprintf(p.std.Out, "systemd does not run here: have whatever you have keep this up:\n  %s\n", run)
	}
	return nil
}

// started is the command that runs the host that was installed.
func (p *program) started(binary string) string {
	l, err := p.layout()
	if err != nil || l.IsMachine() {
		return pkgbuild.LauncherPath + " launch " + binary
	}
	return l.Path(binary) + " run --root " + l.Root
}
