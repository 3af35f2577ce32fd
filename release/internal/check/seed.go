package check

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/seed"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// seedFolder is what the seed's files are called by in a bundle.
const seedFolder = "seed/"

// seeds comes after bundles and repositories: those know better what is wrong with a
// file.
func (r *reading) seeds(ctx context.Context) error {
	err := r.each(r.manifest.bundleName, func(arch, name string) error {
		f, err := r.open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := bundle.Inspect(ctx, f, r.Policy)
		if err != nil {
			return wrong(name, err)
		}
		return r.seed(arch, name, info)
	})
	if err == nil {
		r.tell("seeds", len(r.report.Architectures), "signature, lists what the bundle brings for the next machine, which is what lies here")
	}
	return err
}

// seed holds that what a bundle brings along for the next machine is this
// release's: its list says no more and no less than what is in the bundle, and the
// files it names are those that lie in the release.
func (r *reading) seed(arch, bundleName string, info *bundle.Info) error {
	name := SeedName(r.manifest.Version, arch)
	if err := r.signed(name); err != nil {
		return err
	}
	b, err := input.ReadFile(filepath.Join(r.dir, name), seed.MaxList)
	if err != nil {
		return wrong(name, err)
	}
	l, err := seed.Parse(b)
	if err != nil {
		return bad(name, "%w", err)
	}
	if l.Name != info.Name || l.Version != info.Version || l.Counter != info.Counter || l.Architecture != arch {
		return bad(name, "it is of %s %s for %s, counter %d", l.Name, l.Version, l.Architecture, l.Counter)
	}
	want := map[string]string{
		seed.ListName:                         r.sums[name],
		seed.ListName + trust.SignatureSuffix: r.sums[name+trust.SignatureSuffix],
	}
	for _, f := range l.Files {
		// The keyring lies in the keyring's package only.
		if in := strings.TrimPrefix(f.Name, seed.FloorFolder+"/"); f.Name != seed.KeyringName(arch) && r.sums[in] != f.SHA256 {
			return bad(name, "it lists %q, which is not the %q of the release", f.Name, in)
		}
		want[f.Name] = f.SHA256
	}
	for _, m := range info.Members {
		name, ok := strings.CutPrefix(m.Title, seedFolder)
		if !ok {
			continue
		}
		if want[name] != cmp.Or(m.Content, m.Digest).Encoded() {
			return bad(bundleName, "its %q is not the one that %q lists", m.Title, SeedName(r.manifest.Version, arch))
		}
		delete(want, name)
	}
	for name := range want {
		return bad(bundleName, "it does not bring %q along for the next machine", name)
	}
	return nil
}
