package check

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/goreleaser/nfpm/v2"
	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
)

// packages are the packages of a release, and the program each holds.
var packages = map[string]string{"nox-mesh-host": "mesh-host", "nox-mesh-controller": "mesh-controller", "nox-mesh-keyring": ""}

func (m Manifest) floorName(arch string) string {
	return fmt.Sprintf("nox-mesh-host-%s-linux-%s.tar.gz", m.Version, arch)
}

func (m Manifest) bundleName(arch string) string {
	return fmt.Sprintf("nox-mesh-%s-linux-%s.bundle.tar", m.Version, arch)
}

// SeedName is the list of what the bundle for an architecture brings along for
// the next machine (bundle/seed).
func SeedName(version, arch string) string {
	return fmt.Sprintf("nox-mesh-%s-linux-%s.seed.json", version, arch)
}

func repositoryName(arch string) string { return path.Join("arch", arch) }

// databases are the files of a repository that list its packages.
func databases() []string {
	var out []string
	for _, base := range []string{".db", ".files"} {
		for _, suffix := range []string{"", ".tar.zst"} {
			out = append(out, repository.Name+base+suffix)
		}
	}
	return out
}

// packageVersion is the version as pacman has it.
func (m Manifest) packageVersion() (string, error) {
	v, err := arch.VersionOf(&nfpm.Info{Version: m.Version, Release: "1"})
	return v.String(), err
}

func packageArch(name, arch string) string {
	if packages[name] == "" {
		return "any"
	}
	return arch
}

func (m Manifest) packageFile(name, architecture, version string) string {
	meta := arch.Meta{Name: name, Version: version, Arch: packageArch(name, architecture)}
	return path.Join(repositoryName(architecture), meta.FileName())
}

// wanted are the files a release of this version and these architectures has,
// besides those about the release.
func (m Manifest) wanted() ([]string, error) {
	version, err := m.packageVersion()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, arch := range m.Architectures() {
		list := SeedName(m.Version, arch)
		out = append(out, m.floorName(arch), m.floorName(arch)+trust.SignatureSuffix, m.bundleName(arch), list, list+trust.SignatureSuffix)
		for _, name := range slices.Sorted(maps.Keys(packages)) {
			file := m.packageFile(name, arch, version)
			out = append(out, file, file+trust.PackageSignatureSuffix)
			if program := packages[name]; program != "" {
				out = append(out, SBOMName(program, m.Version, arch), SBOMStatementName(program, m.Version, arch))
			}
		}
		for _, name := range databases() {
			out = append(out, path.Join(repositoryName(arch), name), path.Join(repositoryName(arch), name)+trust.PackageSignatureSuffix)
		}
	}
	if len(out) > 0 {
		out = append(out, ProvenanceName(m.Version))
	}
	slices.Sort(out)
	return out, nil
}

// Complete holds that release.json lists just what a release has.
func (m Manifest) Complete() error {
	wanted, err := m.wanted()
	if err != nil {
		return bad(ManifestName, "%w", err)
	}
	if len(wanted) == 0 {
		return bad(ManifestName, "it lists no tarball of version %q", m.Version)
	}
	listed := map[string]bool{}
	for _, f := range m.Files {
		listed[f.Name] = true
		if !slices.Contains(wanted, f.Name) {
			return bad(ManifestName, "it lists %q, which a release of %s does not have", f.Name, m.Version)
		}
	}
	for _, name := range wanted {
		if !listed[name] {
			return bad(ManifestName, "it does not list %q", name)
		}
	}
	return nil
}

// complete holds that release.json lists what a release has, and that just this
// is there.
func (r *reading) complete(context.Context) error {
	if err := r.manifest.Complete(); err != nil {
		return err
	}
	for _, f := range r.manifest.Files {
		if !r.Has(f.Name) {
			return bad(f.Name, "it is listed, and not there")
		}
	}
	if name := r.Strange(r.manifest); name != "" {
		return bad(name, "it is no file of this release")
	}
	return nil
}

// verifyBytes verifies what was read of the file at path by the signature beside
// it.
func verifyBytes(path string, b []byte, p *trust.Policy) error {
	d, _, err := trust.VerifyFile(path, p)
	if err != nil {
		return err
	}
	if d != digest.FromBytes(b) {
		return fault.Refusedf("cannot verify %q: it changes while it is read", path)
	}
	return nil
}
