// Package check reads the directory of a release as a stranger would.
//
// It believes the keys it is given and nothing else, and shares with the code
// that writes a release only the formats: the tarballs and packages are read
// here by readers of their own, every digest is taken anew, and the databases
// of the repositories are derived again from the packages. A directory that
// passes holds one release, whole, and no other file: what a mirror left out,
// mixed with another release or added is found as well as what was changed.
//
// A release is the release of one version and one or more architectures. Which
// files it has follows from those two alone; release.json can neither add to
// them nor leave one out.
//
// Programs of others that are here (pacman, gpg, cosign) are heard as well, each
// in a folder of its own; one that refuses what this reading accepts fails it,
// and one that is not here is counted as skipped.
//
// It does not say whether the programs were built from the sources: that is for
// whoever builds them again. It reads the directory as it is at that moment, so
// nobody else may write there meanwhile.
package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Options say who is trusted.
type Options struct {
	// Policy decides whose signatures count. It needs a release root: packages
	// are signed by keys that only a root names.
	Policy *trust.Policy
	// Now is the time by the machine's clock; a package signed long after it is
	// refused.
	Now time.Time
	// Find returns the path of a program of others, or "" (see In). Those that
	// are found are heard as well; nil asks none.
	Find func(program string) string
}

// A Report is what was found good.
type Report struct {
	Version       string   `json:"version"`
	Counter       uint64   `json:"counter"`
	Architectures []string `json:"architectures"`
	// Commit is that of the source, as the provenance says; "" if it does not.
	Commit string `json:"commit,omitempty"`
	Lines  []Line `json:"checked"`
	// Witnesses are the programs of others that were looked for; nil if none were.
	Witnesses []Testimony `json:"witnesses,omitempty"`
	// Skipped is how many of them were not heard.
	Skipped int `json:"witnesses_skipped"`
}

// A Line is one kind of thing that was checked.
type Line struct {
	What  string `json:"what"`
	Count int    `json:"count"`
	// How says what was held of each.
	How string `json:"how"`
}

// A reading is one directory being read.
type reading struct {
	Options
	Listing
	manifest Manifest
	sums     map[string]string // SHA-256 in hex by name
	// programs are the digests of the programs by architecture and name, as the
	// artefact that was read first has them.
	programs map[string]map[string]program
	report   Report
}

// A program is a binary and where it was read.
type program struct{ sha256, in string }

// Dir checks the release in dir. The error is a fault of kind Refused that names
// the file and what is wrong with it; one of the file system is not.
//
// A symlink to a release is one: it is followed once, so that all is read in the
// same directory wherever it leads afterwards.
func Dir(ctx context.Context, dir string, o Options) (Report, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Report{}, fmt.Errorf("cannot verify release: %w", err)
	}
	r := &reading{Options: o, sums: map[string]string{}, programs: map[string]map[string]program{}}
	if r.Listing, err = List(real); err != nil {
		return Report{}, fmt.Errorf("cannot verify release %q: %w", dir, err)
	}
	for _, step := range []func(context.Context) error{
		r.readManifest, r.complete, r.readSums, r.digests, r.floors, r.bundles, r.repositories, r.seeds, r.attestations,
		r.hearWitnesses,
	} {
		if err := step(ctx); err != nil {
			return Report{}, fmt.Errorf("cannot verify release %q: %w", dir, err)
		}
	}
	return r.report, nil
}

// bad is what is wrong with a file of the release.
func bad(name, format string, args ...any) error {
	return fault.Refusedf("%q: %w", name, fmt.Errorf(format, args...))
}

// wrong makes an error about the content of a file one about the file; errors
// of the file system stay what they are.
func wrong(name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%q: %w", name, err)
	}
	return bad(name, "%w", err)
}

func (r *reading) tell(what string, count int, how string) {
	r.report.Lines = append(r.report.Lines, Line{What: what, Count: count, How: how})
}

// digests hashes every file that release.json lists, and holds the signatures
// that lie beside files.
func (r *reading) digests(ctx context.Context) error {
	for _, f := range r.manifest.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.Hold(f); err != nil {
			return err
		}
		r.sums[f.Name] = f.SHA256
	}
	r.tell("files", len(r.manifest.Files), "listed, there, size and SHA-256; no other file")
	return nil
}

// signed verifies a file by the signature beside it.
func (r *reading) signed(name string) error {
	d, _, err := trust.VerifyFile(filepath.Join(r.dir, name), r.Policy)
	if err != nil {
		return wrong(name, err)
	}
	return r.written(name, d)
}

// same holds that a program is the same bytes wherever it is.
func (r *reading) same(arch, name, sum, in string) error {
	if r.programs[arch] == nil {
		r.programs[arch] = map[string]program{}
	}
	first, ok := r.programs[arch][name]
	if !ok {
		r.programs[arch][name] = program{sum, in}
		return nil
	}
	if first.sha256 != sum {
		return bad(in, "its %s is not the one of %q", name, first.in)
	}
	return nil
}

func (r *reading) each(name func(arch string) string, do func(arch, name string) error) error {
	for _, arch := range slices.Sorted(slices.Values(r.report.Architectures)) {
		if err := do(arch, name(arch)); err != nil {
			return err
		}
	}
	return nil
}
