// Package product defines the packages of a release for pacman: nox-mesh-host,
// nox-mesh-controller and nox-mesh-keyring.
//
// It says what lies where with which mode; the texts come from pkgbuild, and
// from the programs themselves. It packs nothing: it lays out files in a folder
// of the caller's, which must live until arch.Write has packed them.
// pkgbuild/PKGBUILD makes the same package from source, and a test holds the two
// together.
package product

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/files"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
)

// A Spec says what is packed.
type Spec struct {
	// Version is the release, as in "1.0.0" or "1.0.0-rc.1".
	Version string
	// Architecture is as uname -m says it: "x86_64", "aarch64".
	Architecture string
	// Time is the one time of all files, to the second.
	Time time.Time
	// License is the text of the licence.
	License []byte
	// Binary is the path of the program; the keyring has none.
	Binary string
	// Texts are what the program prints of itself (Describe); the same for every
	// architecture.
	Texts Texts
	// Roots is the chain of release roots, oldest first; the host's alone.
	Roots [][]byte
}

// Host lays nox-mesh-host out under dir.
func Host(dir string, s Spec) (arch.Package, error) {
	b := s.begin(dir, "nox-mesh-host", s.Architecture)
	b.program("mesh-host", s)
	b.text("/usr/lib/systemd/system/mesh-host.service", pkgbuild.HostUnit(pkgbuild.PackagedHost))
	b.text("/usr/lib/tmpfiles.d/nox-mesh-host.conf", pkgbuild.HostTmpfiles())
	b.text("/etc/nox-mesh/host.toml", pkgbuild.HostConfig()).Type = files.TypeConfig
	b.folder("/usr/share/nox-mesh/trust", 0o755)
	for i, root := range s.Roots {
		b.text(fmt.Sprintf("/usr/share/nox-mesh/trust/%d.root.json", i+1), root)
	}
	b.folder("/var/lib/nox-mesh", 0o700)
	b.pkg.Install, b.pkg.Recipe, b.pkg.MakeDepends = pkgbuild.HostInstall(), pkgbuild.Recipe(), []string{"go"}
	return b.pkg, b.err
}

// Controller lays nox-mesh-controller out under dir. It has no unit: the control
// plane is a process of the host's.
func Controller(dir string, s Spec) (arch.Package, error) {
	b := s.begin(dir, "nox-mesh-controller", s.Architecture)
	b.program("mesh-controller", s)
	return b.pkg, b.err
}

// A Keyring is the three files that pacman-key(8) populates from.
type Keyring struct{ GPG, Trusted, Revoked []byte }

// Keys lays nox-mesh-keyring out under dir; s.Architecture does not count.
func Keys(dir string, s Spec, k Keyring) (arch.Package, error) {
	b := s.begin(dir, "nox-mesh-keyring", "any")
	b.text("/usr/share/pacman/keyrings/nox-mesh.gpg", k.GPG)
	b.text("/usr/share/pacman/keyrings/nox-mesh-trusted", k.Trusted)
	b.text("/usr/share/pacman/keyrings/nox-mesh-revoked", k.Revoked)
	b.pkg.Install = pkgbuild.KeyringInstall()
	return b.pkg, b.err
}

// A builder lays a package out; after the first error it does nothing.
type builder struct {
	pkg arch.Package
	dir string
	err error
}

func (s Spec) begin(dir, name, architecture string) *builder {
	version, pre, _ := strings.Cut(s.Version, "-")
	b := &builder{dir: filepath.Join(dir, name), pkg: arch.Package{Info: &nfpm.Info{
		Name: name, Arch: architecture, Platform: "linux", Version: version, Prerelease: pre, Release: "1",
		Description: pkgbuild.Descriptions[name], Homepage: pkgbuild.Homepage, Maintainer: pkgbuild.Packager,
		License: pkgbuild.License, MTime: s.Time, DisableGlobbing: true,
	}}}
	b.err = durable.MkdirAll(b.dir, 0o700)
	b.text("/usr/share/licenses/"+name+"/LICENSE", s.License)
	return b
}

func (b *builder) add(c *files.Content) *files.Content {
	b.pkg.Info.Contents = append(b.pkg.Info.Contents, c)
	return c
}

// text adds a file of mode 0644.
func (b *builder) text(destination string, content []byte) *files.Content {
	source := filepath.Join(b.dir, strings.ReplaceAll(strings.Trim(destination, "/"), "/", "_"))
	if b.err == nil {
		b.err = durable.WriteFile(source, content, 0o600)
	}
	return b.add(&files.Content{Source: source, Destination: destination, FileInfo: &files.ContentFileInfo{Mode: 0o644}})
}

func (b *builder) folder(destination string, mode fs.FileMode) {
	b.add(&files.Content{Destination: destination, Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: mode}})
}

// program adds a binary with what it prints of itself.
func (b *builder) program(name string, s Spec) {
	source, err := filepath.Abs(s.Binary)
	if b.err == nil {
		b.err = err
	}
	b.add(&files.Content{Source: source, Destination: "/usr/bin/" + name, FileInfo: &files.ContentFileInfo{Mode: 0o755}})
	texts := s.Texts.Files(name)
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		b.text("/usr/share/"+path, texts[path])
	}
}
