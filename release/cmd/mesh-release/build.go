package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/progress"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/pack"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

func (p *program) buildCommand() *cobra.Command {
	var r pack.Release
	var out string
	var archs []string
	c := &cobra.Command{
		Use:   "build",
		Short: "Build a release: tarballs, packages and their repository, bundles, checksums, signatures",
		Long: "Build a release from the source tree in the current directory: for each\n" +
			"architecture the floor tarball, the packages for pacman in a signed repository\n" +
			"(arch/ARCH), the first node's bundle and an SBOM of each program, then the\n" +
			"provenance, SHA256SUMS and release.json. Each program is compiled once; what is\n" +
			"packed is the same bytes everywhere.\n\n" +
			"The directory takes the new release by one rename, in the place of an older one.\n" +
			"It may hold nothing else.",
		Example: "  mesh-release build --version 1.0.0 --keys keys --out dist\n" +
			"  mesh-release build --version 1.0.0 --keys keys --out dist --arch x86_64",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkArchitectures(archs); err != nil {
				return err
			}
			if err := p.begin(c.Context(), &r, out); err != nil {
				return err
			}
			show := p.progress()
			m, err := compileAndPack(c.Context(), r, archs, out, show)
			show.Close()
			if err != nil {
				return err
			}
			return p.printRelease(m, out)
		},
	}
	c.Flags().StringSliceVar(&archs, "arch", []string{"x86_64", "aarch64"}, "architectures")
	p.releasing(c, &r, &out)
	return c
}

func checkArchitectures(archs []string) error {
	for i, a := range archs {
		if build.Architectures[a] == "" || slices.Contains(archs[:i], a) {
			return fault.Usagef("cannot build: %q is not x86_64 or aarch64, or is there twice", a).Hint("give --arch x86_64, --arch aarch64, or neither for both")
		}
	}
	return nil
}

// releasing adds the flags of a command that makes a release.
func (p *program) releasing(c *cobra.Command, r *pack.Release, out *string) {
	c.Flags().StringVar(&r.Version, "version", "", "version, as in 1.0.0 or 1.0.0-rc.1")
	c.Flags().StringVar(out, "out", "", "directory to write to")
	c.Flags().StringVar(&r.Source, "source", ".", "source tree")
	c.Flags().Uint64Var(&r.Counter, "counter", 0, "counter of the release (default: the time of the commit)")
	p.signing(c)
}

// begin holds what a person said, opens the keys, and finds out the rest from
// the source tree.
func (p *program) begin(ctx context.Context, r *pack.Release, out string) (err error) {
	if err := pack.CheckVersion(r.Version); err != nil {
		return err
	}
	if err := pack.CheckCounter(r.Counter); err != nil {
		return err
	}
	if out == "" {
		return fault.Usagef("cannot build: no directory to write to").Hint("give --out DIR")
	}
	if _, err := build.Read(filepath.Join(r.Source, build.ConfigName)); err != nil {
		return err
	}
	if r.Signer, err = p.publisher(); err != nil {
		return err
	}
	if err := pack.CheckOut(out, r.Signer.Policy); err != nil {
		return err
	}
	if r.Counter == 0 {
		r.Counter, err = build.CommitTime(ctx, r.Source)
	}
	r.Commit = build.Commit(ctx, r.Source)
	// git was not asked to the end then, and what it said is not to be gone by.
	if ctx.Err() != nil {
		return fault.Failedf("cannot build: it was interrupted")
	}
	return err
}

// progress shows the steps of a long work.
func (p *program) progress() *progress.Reporter {
	return progress.New(p.std.Err, progress.Options{JSON: p.json, Quiet: p.quiet})
}

// compileAndPack compiles the programs for the architectures and makes the
// release of them in out.
func compileAndPack(ctx context.Context, r pack.Release, archs []string, out string, show *progress.Reporter) (m *pack.Manifest, err error) {
	compiler, err := build.New(ctx, r.Source)
	if err != nil {
		return nil, err
	}
	work, done, err := place.Temp()
	if err != nil {
		return nil, fmt.Errorf("cannot build: %w", err)
	}
	defer func() { err = errors.Join(err, done()) }()
	// The programs describe themselves: one for this machine is needed for that,
	// though it may not be in the release.
	compiled := slices.Clone(archs)
	if native := pack.Native(); !slices.Contains(archs, native) {
		compiled = append(compiled, native)
	}
	for _, arch := range compiled {
		dir := filepath.Join(work, arch)
		if err := durable.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("cannot build: %w", err)
		}
		for _, id := range pack.Contents {
			show.Step("compiling " + id + " for " + arch)
			file, err := compiler.Build(ctx, id, arch, r.Version, dir)
			if err != nil {
				return nil, err
			}
			program, err := pack.ReadProgram(file)
			if err != nil {
				return nil, err
			}
			if slices.Contains(archs, arch) {
				r.Programs = append(r.Programs, program)
			} else {
				r.Describers = append(r.Describers, program)
			}
		}
	}
	show.Step("packing release " + r.Version)
	return r.Write(ctx, out)
}

func (p *program) printRelease(m *pack.Manifest, out string) error {
	if p.json {
		return cli.JSON(p.std.Out, m)
	}
	for _, f := range m.Files {
		if err := p.print("%s  %s", f.SHA256, filepath.Join(out, f.Name)); err != nil {
			return err
		}
	}
	return nil
}
