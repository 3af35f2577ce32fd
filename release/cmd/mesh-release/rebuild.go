package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
	"github.com/nox-mesh/nox-mesh/release/internal/pack"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

// A comparison is how a file of a release compares to the one built again.
type comparison struct {
	Name string `json:"name"`
	Same bool   `json:"same"`
	// How says what is different.
	How string `json:"how,omitempty"`
}

func (p *program) rebuildCommand() *cobra.Command {
	var source, trusted string
	c := &cobra.Command{
		Use:   "rebuild DIR",
		Short: "Build a release again and compare it byte by byte",
		Long: "Build the release in DIR again, with its version, counter and architectures, from\n" +
			"the source tree in the current directory, and compare every file, signatures\n" +
			"included. Exit 1 when one differs. It takes the same Go.\n\n" +
			"Nobody needs the secret keys for that: with --trust the signatures of the release\n" +
			"are taken where they cover what was built. Only to see byte by byte where a file\n" +
			"differs it takes the keys that signed.",
		Example: "  mesh-release rebuild --trust public dist\n  mesh-release rebuild --keys keys dist",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			m, signer, err := p.rebuilder(args[0], trusted)
			if err != nil {
				return err
			}
			all, err := again(c.Context(), args[0], m, pack.Release{Source: source, Signer: signer})
			if err != nil {
				return err
			}
			return p.printComparison(args[0], all)
		},
	}
	c.Flags().StringVar(&source, "source", ".", "source tree")
	c.Flags().StringVar(&trusted, "trust", "", "directory of release roots and public keys, for whoever has no secret ones")
	p.signing(c)
	return c
}

// rebuilder reads what the release in dir consists of, and finds who signs it
// again.
func (p *program) rebuilder(dir, trusted string) (pack.Manifest, *signing.Signer, error) {
	if trusted == "" && p.keys == "" {
		return pack.Manifest{}, nil, fault.Usagef("cannot build release %q again: nobody is trusted", dir).Hint("give --trust DIR, or --keys DIR")
	}
	if trusted == "" {
		signer, err := p.publisher()
		if err != nil {
			return pack.Manifest{}, nil, err
		}
		m, err := check.ReadManifest(dir, signer.Policy)
		return m, signer, err
	}
	policy, err := trust.LoadDir(trusted)
	if err != nil {
		return pack.Manifest{}, nil, err
	}
	m, err := check.ReadManifest(dir, policy)
	if err != nil {
		return m, nil, err
	}
	signer, err := signing.Again(dir, m.Names(), policy.Chain())
	return m, signer, err
}

// again builds the release in dir a second time and compares.
func again(ctx context.Context, dir string, m pack.Manifest, r pack.Release) ([]comparison, error) {
	compiler, err := build.New(ctx, r.Source)
	if err != nil {
		return nil, err
	}
	for _, tool := range [][3]string{
		{m.Go, compiler.GoVersion, "another Go gives other bytes"},
		{m.Compressor, pack.Compressor(), "a mesh-release with that gives the same bytes"},
	} {
		if tool[0] != tool[1] {
			return nil, fault.Failedf("cannot build release %q again: it was built with %s, here is %s", dir, tool[0], tool[1]).
				Hint("take %s; %s", tool[0], tool[2])
		}
	}
	work, err := os.MkdirTemp("", "mesh-release-*")
	if err != nil {
		return nil, fmt.Errorf("cannot build release %q again: %w", dir, err)
	}
	defer os.RemoveAll(work)
	r.Version, r.Counter, r.Commit = m.Version, m.Counter, build.Commit(ctx, r.Source)
	out := filepath.Join(work, "dist")
	if _, err := compileAndPack(ctx, r, m.Architectures(), out); err != nil {
		return nil, fmt.Errorf("cannot build release %q again: %w", dir, err)
	}
	return compare(dir, out)
}

func (p *program) printComparison(dir string, all []comparison) error {
	different := 0
	var rows [][]string
	for _, c := range all {
		is := "same"
		if !c.Same {
			is = "differs"
			different++
		}
		rows = append(rows, []string{c.Name, is, c.How})
	}
	var err error
	if p.json {
		err = cli.JSON(p.std.Out, all)
	} else {
		err = cli.Table(p.std.Out, []string{"FILE", "BUILT AGAIN", "WHERE"}, rows)
	}
	if err == nil && different > 0 {
		return fault.Failedf("cannot build release %q again: %d of %s differ", dir, different, cli.Count(len(all), "file", "files"))
	}
	return err
}

// compare compares all files of two directories.
func compare(dir, again string) ([]comparison, error) {
	names := map[string]bool{}
	for _, top := range []string{dir, again} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(top, path)
			names[name] = true
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("cannot compare release: %w", err)
		}
	}
	var out []comparison
	for _, name := range slices.Sorted(maps.Keys(names)) {
		how, err := difference(filepath.Join(dir, name), filepath.Join(again, name))
		if err != nil {
			return nil, fmt.Errorf("cannot compare %q: %w", name, err)
		}
		out = append(out, comparison{Name: name, Same: how == "", How: how})
	}
	return out, nil
}

// difference says how the second file differs from the first, or "".
func difference(first, second string) (string, error) {
	for path, how := range map[string]string{first: "only built again", second: "not built again"} {
		fi, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return how, nil
		}
		if err != nil {
			return "", err
		}
		if !fi.Mode().IsRegular() {
			return "not a regular file", nil
		}
	}
	a, err := os.Open(first)
	if err != nil {
		return "", err
	}
	defer a.Close()
	b, err := os.Open(second)
	if err != nil {
		return "", err
	}
	defer b.Close()
	x, y := bufio.NewReaderSize(a, 64<<10), bufio.NewReaderSize(b, 64<<10)
	for at := int64(0); ; at++ {
		c, errX := x.ReadByte()
		d, errY := y.ReadByte()
		for _, err := range []error{errX, errY} {
			if err != nil && err != io.EOF {
				return "", err
			}
		}
		switch {
		case errX == io.EOF && errY == io.EOF:
			return "", nil
		case errX != errY || c != d:
			return fmt.Sprintf("byte %d", at), nil
		}
	}
}
