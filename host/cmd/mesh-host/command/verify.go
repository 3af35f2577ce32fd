package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// verified is one file that verified.
type verified struct {
	File    string         `json:"file"`
	Digest  digest.Digest  `json:"digest"`
	Signers []trust.Signer `json:"signers"`
}

func (p *program) verify() *cobra.Command {
	var o service.Override
	c := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Check who signed a bundle, a package, or a file with its signature beside it",
		Long: `Check each FILE against what this machine trusts and say who signed it: a bundle
(*.bundle.tar) whole, a package (*.pkg.tar.*) by its signature in FILE.sig, more
strictly than pacman, any other file by its signature in FILE.sigstore.json.
Exits 3 when one does not verify.`,
		Example: "  mesh-host verify nox-mesh-1.0.0-linux-x86_64.bundle.tar SHA256SUMS\n" +
			"  mesh-host verify hello-1.0-1-any.pkg.tar.zst    # and hello-1.0-1-any.pkg.tar.zst.sig",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			policy, err := p.policy(o)
			if err != nil {
				return err
			}
			var out []verified
			for _, name := range args {
				v, err := p.verifyFile(c.Context(), name, policy)
				if err != nil {
					return err
				}
				out = append(out, v)
			}
			return p.print(out, func() error {
				var rows [][]string
				for _, v := range out {
					rows = append(rows, []string{v.File, signedBy(v.Signers), v.Digest.String()})
				}
				return cli.Table(p.std.Out, []string{"FILE", "SIGNED BY", "DIGEST"}, rows)
			})
		},
	}
	trustFlags(c, &o)
	return c
}

func (p *program) verifyFile(ctx context.Context, name string, policy *trust.Policy) (verified, error) {
	v := verified{File: name}
	// A file that is not there is not one without a signature.
	if _, err := os.Stat(name); name != "-" && errors.Is(err, fs.ErrNotExist) {
		return v, fault.Failedf("cannot verify %q: no such file", name)
	}
	switch {
	case name == "-" || strings.HasSuffix(name, ".bundle.tar"):
		in, done, err := p.open(ctx, name)
		if err != nil {
			return v, fmt.Errorf("cannot verify %q: %w", name, err)
		}
		defer done()
		show, shown := p.reading(name)
		info, err := bundle.Read(ctx, in, bundle.Options{Policy: policy, Progress: show})
		shown()
		if err != nil {
			return v, fmt.Errorf("cannot verify %q: %w", name, err)
		}
		v.Digest, v.Signers = info.Digest, info.Signers
		return v, nil
	case trust.IsPackage(name):
		d, signer, err := trust.VerifyPackageFile(name, policy, times())
		v.Digest, v.Signers = d, []trust.Signer{signer}
		return v, err
	}
	d, signers, err := trust.VerifyFile(name, policy)
	v.Digest, v.Signers = d, signers
	return v, err
}

// times are the moments a signature cannot be far ahead of. The binary has the
// time of its commit, as every package and tarball gives it, or of the day it
// was built here.
func times() trust.Times {
	t := trust.Times{Clock: clock.System.Now()}
	if self, err := os.Executable(); err == nil {
		if fi, err := os.Stat(self); err == nil {
			t.Build = fi.ModTime()
		}
	}
	return t
}
