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

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
)

// A comparison is how a file of a release compares to the one built again.
type comparison struct {
	Name string `json:"name"`
	Same bool   `json:"same"`
	// How says what is different.
	How string `json:"how,omitempty"`
}

func (p *program) rebuildCommand() *cobra.Command {
	var source string
	c := &cobra.Command{
		Use:   "rebuild DIR",
		Short: "Build a release again and compare it byte by byte",
		Long: "Build the release in DIR again, with its version, counter and architectures, from\n" +
			"the source tree in the current directory, and compare every file, signatures\n" +
			"included. Exit 1 when one differs. It takes the keys that signed, and the same Go.",
		Example: "  mesh-release rebuild --keys keys dist",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r := &release{source: source}
			var err error
			if r.signer, err = p.signer(); err != nil {
				return err
			}
			if r.signer.packages, err = p.packageKey(); err != nil {
				return err
			}
			all, err := r.again(c.Context(), args[0])
			if err != nil {
				return err
			}
			return p.printComparison(args[0], all)
		},
	}
	c.Flags().StringVar(&source, "source", ".", "source tree")
	p.signing(c)
	return c
}

// again builds the release in dir a second time and compares.
func (r *release) again(ctx context.Context, dir string) ([]comparison, error) {
	m, err := check.ReadManifest(dir, r.signer.policy)
	if err != nil {
		return nil, err
	}
	compiler, err := build.New(ctx, r.source)
	if err != nil {
		return nil, err
	}
	if compiler.GoVersion != m.Go {
		return nil, fault.Failedf("cannot build release %q again: it was built with %s, here is %s", dir, m.Go, compiler.GoVersion).
			Hint("install %s; another Go gives other bytes", m.Go)
	}
	work, err := os.MkdirTemp("", "mesh-release-*")
	if err != nil {
		return nil, fmt.Errorf("cannot build release %q again: %w", dir, err)
	}
	defer os.RemoveAll(work)
	r.out, r.version, r.counter = filepath.Join(work, "dist"), m.Version, m.Counter
	archs := m.Architectures()
	if err := r.check(archs); err != nil {
		return nil, err
	}
	if _, err := r.run(ctx, archs); err != nil {
		return nil, err
	}
	return compare(dir, r.out)
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
