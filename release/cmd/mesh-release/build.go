package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/arch/product"
	"github.com/nox-mesh/nox-mesh/release/internal/attest"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
	"github.com/nox-mesh/nox-mesh/release/internal/floor"
	"github.com/nox-mesh/nox-mesh/release/internal/recipe"
	"github.com/nox-mesh/nox-mesh/release/recipes"
)

// maxCounter is the latest time a USTAR header can say, in seconds.
const maxCounter = 1<<33 - 1

var versionPattern = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]+(\.[0-9A-Za-z]+)*)?$`)

// A release is one run of "build".
type release struct {
	signer   *signer
	compiler *build.Compiler
	source   string
	out      string
	version  string
	counter  uint64
	// texts are what each program says of itself.
	texts map[string]product.Texts
	// commit is that of the source, or "".
	commit   string
	programs []attest.Subject
	files    []check.File
}

func (p *program) buildCommand() *cobra.Command {
	r := &release{}
	var archs []string
	c := &cobra.Command{
		Use:   "build",
		Short: "Build a release: tarballs, packages and their repository, bundles, checksums, signatures",
		Long: "Build a release from the source tree in the current directory: for each\n" +
			"architecture the floor tarball, the packages for pacman in a signed repository\n" +
			"(arch/ARCH), the first node's bundle and an SBOM of each program, then the\n" +
			"provenance, SHA256SUMS and release.json, which comes last: a directory without it is not a release. Each program is compiled\n" +
			"once; what is packed is the same bytes everywhere.",
		Example: "  mesh-release build --version 1.0.0 --keys keys --out dist\n" +
			"  mesh-release build --version 1.0.0 --keys keys --out dist --arch x86_64",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := r.check(archs); err != nil {
				return err
			}
			var err error
			if r.signer, err = p.signer(); err != nil {
				return err
			}
			if r.signer.packages, err = p.packageKey(); err != nil {
				return err
			}
			m, err := r.run(c.Context(), archs)
			if err != nil {
				return err
			}
			if p.json {
				return cli.JSON(p.std.Out, m)
			}
			for _, f := range m.Files {
				fmt.Fprintf(p.std.Out, "%s  %s\n", f.SHA256, filepath.Join(r.out, f.Name))
			}
			return nil
		},
	}
	c.Flags().StringVar(&r.version, "version", "", "version, as in 1.0.0 or 1.0.0-rc.1")
	c.Flags().StringVar(&r.out, "out", "", "directory to write to")
	c.Flags().StringVar(&r.source, "source", ".", "source tree")
	c.Flags().StringSliceVar(&archs, "arch", []string{"x86_64", "aarch64"}, "architectures")
	c.Flags().Uint64Var(&r.counter, "counter", 0, "counter of the release (default: the time of the commit)")
	p.signing(c)
	return c
}

func (r *release) check(archs []string) error {
	if !versionPattern.MatchString(r.version) {
		return fault.Usagef("cannot build: %q is not a version", r.version).Hint("give --version 1.0.0 or 1.0.0-rc.1, without a \"v\"")
	}
	if r.out == "" {
		return fault.Usagef("cannot build: no directory to write to").Hint("give --out DIR")
	}
	if r.counter > maxCounter {
		return fault.Usagef("cannot build: the counter %d is above %d", r.counter, uint64(maxCounter))
	}
	for i, a := range archs {
		if build.Architectures[a] == "" || slices.Contains(archs[:i], a) {
			return fault.Usagef("cannot build: %q is not x86_64 or aarch64, once", a)
		}
	}
	return nil
}

func (r *release) run(ctx context.Context, archs []string) (*check.Manifest, error) {
	var err error
	if r.compiler, err = build.New(ctx, r.source); err != nil {
		return nil, err
	}
	if r.counter == 0 {
		if r.counter, err = r.compiler.CommitTime(ctx); err != nil {
			return nil, err
		}
	}
	r.commit = attest.Commit(ctx, r.source)
	if err := durable.MkdirAll(r.out, 0o755); err != nil {
		return nil, fmt.Errorf("cannot build: %w", err)
	}
	// What is there of another release is none any more from here on.
	if err := durable.Remove(filepath.Join(r.out, releaseName)); err != nil {
		return nil, fmt.Errorf("cannot build: %w", err)
	}
	work, err := os.MkdirTemp("", "mesh-release-*")
	if err != nil {
		return nil, fmt.Errorf("cannot build: %w", err)
	}
	defer os.RemoveAll(work)
	if err := r.describe(ctx, work); err != nil {
		return nil, err
	}
	for _, arch := range archs {
		if err := r.architecture(ctx, arch, work); err != nil {
			return nil, err
		}
	}
	if err := r.provenance(); err != nil {
		return nil, err
	}
	return r.finish()
}

// architecture makes what a release has for one architecture. Each program is
// compiled once; whatever it is packed into holds the same bytes.
func (r *release) architecture(ctx context.Context, arch, work string) error {
	host, err := r.compiler.Build(ctx, "mesh-host", arch, r.version, work)
	if err != nil {
		return err
	}
	controller, err := r.compiler.Build(ctx, "mesh-controller", arch, r.version, work)
	if err != nil {
		return err
	}
	for id, binary := range map[string]string{"mesh-host": host, "mesh-controller": controller} {
		if err := r.sbom(id, arch, binary); err != nil {
			return err
		}
	}
	if err := r.floor(arch, host); err != nil {
		return err
	}
	if err := r.packages(ctx, arch, work, map[string]string{"mesh-host": host, "mesh-controller": controller}); err != nil {
		return err
	}
	first, err := recipe.Read(filepath.Join(r.source, recipes.FirstNode))
	if err != nil {
		return err
	}
	if err := first.Fill(r.version, arch, map[string]string{"mesh-controller": controller}); err != nil {
		return err
	}
	name := fmt.Sprintf("nox-mesh-%s-linux-%s.bundle.tar", r.version, arch)
	if _, err := r.signer.bundle(ctx, first, r.counter, filepath.Join(r.out, name)); err != nil {
		return err
	}
	return r.add(name)
}

func (r *release) floor(arch, host string) error {
	binary, err := os.ReadFile(host)
	if err != nil {
		return fmt.Errorf("cannot pack the floor: %w", err)
	}
	license, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return fmt.Errorf("cannot pack the floor: %w", err)
	}
	spec := floor.Spec{
		Version: r.version, Architecture: arch, Time: time.Unix(int64(r.counter), 0),
		Host: binary, License: license, Roots: r.signer.roots, Signer: r.signer.key,
	}
	if err := floor.Write(r.out, spec); err != nil {
		return err
	}
	if _, err := r.signer.file(filepath.Join(r.out, spec.Name())); err != nil {
		return err
	}
	if err := r.add(spec.Name()); err != nil {
		return err
	}
	return r.add(spec.Name() + trust.SignatureSuffix)
}

// add takes a finished file into the release, as it is on the disk.
func (r *release) add(name string) error {
	f, err := os.Open(filepath.Join(r.out, name))
	if err != nil {
		return fmt.Errorf("cannot read back %q: %w", name, err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot read back %q: %w", name, err)
	}
	d, err := digest.SHA256.FromReader(f)
	if err != nil {
		return fmt.Errorf("cannot read back %q: %w", name, err)
	}
	r.files = append(r.files, check.File{Name: name, Size: fi.Size(), SHA256: d.Encoded()})
	slices.SortFunc(r.files, func(a, b check.File) int { return strings.Compare(a.Name, b.Name) })
	return nil
}
