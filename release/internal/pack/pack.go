// Package pack puts compiled programs into a release: for each architecture the
// floor tarball, the packages for pacman in a signed repository, the first
// node's bundle and the SBOMs, then the provenance, SHA256SUMS and release.json.
//
// It is the one way from programs to a release. Whoever compiled them, this
// program or GoReleaser: what is packed is the same bytes everywhere, and each
// program says itself what it is: its name, machine and toolchain, the version
// that is linked into it, the flags that it was compiled with. One that says
// another version than the release, or other flags than .goreleaser.yaml, is
// refused, so that what the release states of it is true.
//
// A release is made in a directory of its own beside the one it is for, and takes
// its place by one rename: at every instant, also after a kill or a power cut,
// the directory holds the old release or the new one, whole. It must not be
// there, be empty or hold a release of ours; anything else in it is somebody's,
// and left.
package pack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/release/internal/arch/product"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

// A Release says what is packed.
type Release struct {
	// Version is as in "1.0.0" or "1.0.0-rc.1".
	Version string
	// Counter grows with each release; it is also the one time of all files, in
	// seconds since 1970.
	Counter uint64
	// Source is the source tree: licence, recipes and build flags are taken from
	// it. Commit is its commit in hex, or "".
	Source, Commit string
	// Programs are those of Contents for each architecture.
	Programs []Program
	// Describers are those of Contents for this machine, to be asked for their
	// manual pages and completions. Needed where Programs has none for it.
	Describers []Program
	Signer     *signing.Signer
}

// Manifest is release.json.
type Manifest = check.Manifest

// Contents are the programs that a release holds, by id.
var Contents = []string{"mesh-controller", "mesh-host"}

// Write makes the release in the directory out.
func (r Release) Write(ctx context.Context, out string) (*Manifest, error) {
	if err := CheckVersion(r.Version); err != nil {
		return nil, err
	}
	if err := CheckCounter(r.Counter); err != nil {
		return nil, err
	}
	programs, err := r.complete()
	if err != nil {
		return nil, err
	}
	config, err := r.config()
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Concat(r.Programs, r.Describers) {
		if err := r.admit(config, p); err != nil {
			return nil, err
		}
	}
	var m *Manifest
	err = replace(ctx, out, r.Signer.Policy, func(dir string) error {
		work, done, err := place.Temp()
		if err != nil {
			return err
		}
		p := &packing{Release: r, flags: config, dir: dir, work: work}
		m, err = p.all(ctx, programs)
		return errors.Join(err, done())
	})
	if err != nil {
		return nil, fmt.Errorf("cannot write %q: %w", out, err)
	}
	return m, nil
}

// complete returns the programs by architecture and id; none may be missing or
// there twice.
func (r Release) complete() (map[string]map[string]Program, error) {
	all := map[string]map[string]Program{}
	for _, p := range r.Programs {
		of := all[p.Architecture]
		if of == nil {
			of = map[string]Program{}
			all[p.Architecture] = of
		}
		if _, twice := of[p.ID]; twice {
			return nil, fault.Refusedf("cannot pack %q: there is another %s for %s", p.Path, p.ID, p.Architecture)
		}
		of[p.ID] = p
	}
	for arch, of := range all {
		for _, id := range Contents {
			if _, ok := of[id]; !ok {
				return nil, fault.Refusedf("cannot pack: there is no %s for %s", id, arch)
			}
		}
	}
	if len(all) == 0 {
		return nil, fault.Usagef("cannot pack: there is no program")
	}
	return all, nil
}

// A packing is a release being made in the directory dir.
type packing struct {
	Release
	flags     build.Config
	dir, work string
	license   []byte
	// texts are what each program says of itself, the same for every
	// architecture.
	texts    map[string]product.Texts
	packed   []Program
	files    []check.File
	manifest Manifest
}

func (p *packing) time() time.Time { return timeOf(p.Counter) }

func timeOf(counter uint64) time.Time { return time.Unix(int64(counter), 0).UTC() }

func (p *packing) all(ctx context.Context, programs map[string]map[string]Program) (*Manifest, error) {
	var err error
	if p.license, err = input.ReadFile(filepath.Join(p.Source, "LICENSE"), 1<<20); err != nil {
		return nil, err
	}
	if err := p.describe(ctx); err != nil {
		return nil, err
	}
	for _, arch := range slices.Sorted(maps.Keys(programs)) {
		if err := p.architecture(ctx, arch, programs[arch]); err != nil {
			return nil, err
		}
	}
	if err := p.provenance(); err != nil {
		return nil, err
	}
	return p.finish()
}

// architecture makes what a release has for one architecture.
func (p *packing) architecture(ctx context.Context, arch string, programs map[string]Program) error {
	for _, id := range Contents {
		if err := p.sbom(programs[id]); err != nil {
			return err
		}
		p.packed = append(p.packed, programs[id])
	}
	if err := p.floor(programs["mesh-host"]); err != nil {
		return err
	}
	if err := p.packages(ctx, arch, programs); err != nil {
		return err
	}
	return p.firstNode(ctx, arch, programs["mesh-controller"])
}
