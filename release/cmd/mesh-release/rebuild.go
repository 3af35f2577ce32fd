package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/progress"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
	"github.com/nox-mesh/nox-mesh/release/internal/pack"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

func (p *program) rebuildCommand() *cobra.Command {
	var source, roots string
	c := &cobra.Command{
		Use:   "rebuild DIR",
		Short: "Build a release again and compare it byte by byte",
		Long: "Build the release in DIR again, with its version, counter and architectures, from\n" +
			"the source tree in the current directory, and compare every file, signatures\n" +
			"included. Exit 1 when one differs. It takes the same Go.\n\n" +
			"Nobody needs the secret keys for that: with --trust the signatures of the release\n" +
			"are taken where they cover what was built, and the last line says in how many\n" +
			"files. Only to see byte by byte where a file differs it takes the keys that signed.",
		Example: "  mesh-release rebuild --trust public dist\n  mesh-release rebuild --keys keys dist",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := p.rebuild(c.Context(), args[0], source, roots)
			if err != nil {
				return err
			}
			return p.printRebuilt(r)
		},
	}
	c.Flags().StringVar(&source, "source", ".", "source tree")
	c.Flags().StringVar(&roots, "trust", "", "directory of release roots and public keys, for whoever has no secret ones")
	p.signing(c)
	return c
}

// rebuild builds the release in dir again. A symlink to one is followed once.
func (p *program) rebuild(ctx context.Context, dir, source, roots string) (rebuilt, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return rebuilt{}, fault.Failedf("cannot build release %q again: %w", dir, err).Hint("give the directory of a release")
	}
	m, signer, err := p.rebuilder(dir, real, roots)
	if err != nil {
		return rebuilt{}, err
	}
	show := p.progress()
	all, err := again(ctx, real, m, pack.Release{Source: source, Signer: signer}, show)
	show.Close()
	if err != nil {
		return rebuilt{}, fmt.Errorf("cannot build release %q again: %w", dir, err)
	}
	return verdict(dir, m, all, roots != ""), nil
}

// rebuilder reads what the release consists of that is called dir and is in real,
// and finds who signs it again.
func (p *program) rebuilder(dir, real, roots string) (m pack.Manifest, s *signing.Signer, err error) {
	if roots == "" && p.keys == "" {
		return m, nil, fault.Usagef("cannot build release %q again: nobody is trusted", dir).Hint("give --trust DIR, or --keys DIR")
	}
	if roots == "" {
		if _, err := os.Stat(p.keys); err != nil {
			return m, nil, fault.Failedf("cannot read keys: %w", err).Hint("give the directory of the keys that signed the release, or --trust DIR")
		}
		if s, err = p.publisher(); err == nil {
			m, err = readRelease(real, s.Policy)
		}
		return m, s, err
	}
	policy, err := trusted(roots)
	if err != nil {
		return m, nil, err
	}
	if m, err = readRelease(real, policy); err != nil {
		return m, nil, err
	}
	// All signatures are read next: no more of each than the list says.
	found, err := check.List(real)
	if err == nil {
		err = found.HoldSignatures(m)
	}
	if err != nil {
		return m, nil, fmt.Errorf("cannot build release %q again: %w", dir, err)
	}
	s, err = signing.Again(real, m.Names(), policy.Chain())
	return m, s, err
}

func readRelease(dir string, policy *trust.Policy) (pack.Manifest, error) {
	m, err := check.ReadManifest(dir, policy)
	if errors.Is(err, fs.ErrNotExist) {
		return m, fault.Failedf("%w", err).Hint("give the directory of a release")
	}
	return m, err
}

// again builds the release in dir a second time and compares.
func again(ctx context.Context, dir string, m pack.Manifest, r pack.Release, show *progress.Reporter) (all []comparison, err error) {
	compiler, err := build.New(ctx, r.Source)
	if err != nil {
		return nil, err
	}
	for _, tool := range [][3]string{
		{m.Go, compiler.GoVersion, "another Go gives other bytes"},
		{m.Compressor, pack.Compressor(), "a mesh-release with that gives the same bytes"},
	} {
		if tool[0] != tool[1] {
			return nil, fault.Failedf("it was built with %s, here is %s", tool[0], tool[1]).
				Hint("take %s; %s", tool[0], tool[2])
		}
	}
	work, done, err := place.Temp()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	r.Version, r.Counter, r.Commit = m.Version, m.Counter, build.Commit(ctx, r.Source)
	out := filepath.Join(work, "dist")
	if _, err := compileAndPack(ctx, r, m.Architectures(), out, show); err != nil {
		return nil, err
	}
	show.Step("comparing")
	return compare(dir, out)
}
