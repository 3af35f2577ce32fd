package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
)

// verified is what is known of a file after it verified.
type verified struct {
	File   string         `json:"file"`
	Digest string         `json:"digest"`
	Signed []trust.Signer `json:"signers"`
	// Bundle is set when the file is a bundle, which was read to its end.
	Bundle *bundle.Info `json:"bundle,omitempty"`
}

func (p *program) verifyCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "verify DIR | FILE…",
		Short: "Verify a whole release, or single files of one",
		Long: "Verify a release, or bundles and files with a signature beside them, against a\n" +
			"directory of release roots and public keys. Of a release everything is read:\n" +
			"every file must be one that a release has, and none may be missing or more.\n" +
			"Then pacman, gpg and cosign read it too, those of them that are installed;\n" +
			"one that is not is counted as skipped.\n" +
			"The first that does not verify is exit 3.",
		Example: "  mesh-release verify --trust keys dist\n" +
			"  mesh-release verify --trust keys dist/*.tar.gz dist/*.bundle.tar dist/release.json",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if dir == "" {
				return fault.Usagef("cannot verify: nobody is trusted").Hint("give --trust DIR")
			}
			policy, err := trusted(dir)
			if err != nil {
				return err
			}
			for _, file := range args {
				fi, err := os.Stat(file)
				if err != nil {
					return fault.Failedf("cannot verify: %w", err).Hint("give the directory of a release, or files of one")
				}
				if fi.IsDir() && len(args) == 1 {
					return p.verifyRelease(c.Context(), file, policy)
				}
			}
			var all []verified
			for _, file := range args {
				v, err := p.verifyFile(c.Context(), file, policy)
				if err != nil {
					return err
				}
				all = append(all, v)
				if p.json {
					continue
				}
				if err := p.say("%s: good, %s, signed by %s", v.File, v.Digest, v.Signed[0].Key); err != nil {
					return err
				}
			}
			if p.json {
				return cli.JSON(p.std.Out, all)
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "trust", "", "directory of release roots and public keys")
	return c
}

// verifyRelease reads all of the release in dir.
func (p *program) verifyRelease(ctx context.Context, dir string, policy *trust.Policy) error {
	report, err := check.Dir(ctx, dir, check.Options{
		Policy: policy, Now: clock.System.Now(), Find: check.In(os.Getenv("PATH")),
	})
	if err != nil {
		return err
	}
	if p.json {
		return cli.JSON(p.std.Out, report)
	}
	if p.quiet {
		return nil
	}
	var rows [][]string
	for _, l := range report.Lines {
		rows = append(rows, []string{l.What, strconv.Itoa(l.Count), l.How})
	}
	if err := cli.Table(p.std.Out, []string{"CHECKED", "COUNT", "HOW"}, rows); err != nil {
		return err
	}
	if err := p.printWitnesses(report); err != nil {
		return err
	}
	commit := cmp.Or(report.Commit, "a commit that is not known")
	if err := p.print(""); err != nil {
		return err
	}
	return p.print("%s: release %s for %s, counter %d, of %s: good",
		dir, report.Version, strings.Join(report.Architectures, ", "), report.Counter, commit)
}

// printWitnesses says what the programs of others said. One that was not heard
// is never silent: it could have refused.
func (p *program) printWitnesses(report check.Report) error {
	var rows [][]string
	for _, t := range report.Witnesses {
		files, how := strconv.Itoa(t.Verified), t.How
		if t.Skipped != "" {
			files, how = "-", "skipped: "+t.Skipped
		}
		rows = append(rows, []string{t.Program, cmp.Or(t.Version, "-"), files, how})
	}
	if err := p.print(""); err != nil {
		return err
	}
	if err := cli.Table(p.std.Out, []string{"WITNESS", "VERSION", "FILES", "HOW"}, rows); err != nil {
		return err
	}
	if report.Skipped == 0 {
		return nil
	}
	return p.print("%d of %d witnesses skipped", report.Skipped, len(report.Witnesses))
}

// verifyFile takes the signature beside the file when there is one; a file
// without must be a bundle, which carries its own.
func (p *program) verifyFile(ctx context.Context, path string, policy *trust.Policy) (verified, error) {
	if _, err := os.Lstat(path + trust.SignatureSuffix); !errors.Is(err, fs.ErrNotExist) {
		d, signers, err := trust.VerifyFile(path, policy)
		return verified{File: path, Digest: d.String(), Signed: signers}, err
	}
	// A pipe in its place does not hold us up.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return verified{}, fmt.Errorf("cannot verify: %w", err)
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return verified{}, fault.Refusedf("cannot verify %q: it is not a regular file", path).
			Hint("save it to a file first; mesh-host verify - reads a bundle from a pipe")
	}
	const first = "oci-layout\x00"
	head := make([]byte, len(first))
	// One that is called a bundle and is none is told what it is instead.
	if n, _ := f.ReadAt(head, 0); string(head[:n]) != first && !strings.HasSuffix(path, ".bundle.tar") {
		return verified{}, fault.Refusedf("cannot verify %q: it is no bundle, and there is no %q", path, path+trust.SignatureSuffix)
	}
	told, shown := p.telling(path)
	info, err := bundle.Read(ctx, f, bundle.Options{Policy: policy, Progress: func(at bundle.Progress) { told("reading", at) }})
	shown()
	if err != nil {
		return verified{}, fmt.Errorf("%q: %w", path, err)
	}
	return verified{File: path, Digest: info.Digest.String(), Signed: info.Signers, Bundle: info}, nil
}
