// Package seed is the list of what a first node's bundle brings along for the
// next machine: the packages of one release for one architecture in their signed
// repository, and the floor tarball. A control plane serves exactly that
// (controlplane/internal/repository), and `mesh-controller join` says how the next
// machine takes it.
//
// The list is a file, release.json, signed by the release key in a file beside
// it. It names what lies next to it by size and digest, so whoever verified the
// list knows each file whole, whoever wrote it to the disk or sent it.
//
// It promises that a List that was read says what a machine needs, all of it and
// nothing else: a database with its signature, each package with its own, one
// tarball, one keyring; that each name in it is plain (one word of a shell, no
// path out of its folder); and that it is of one architecture. It keeps nothing
// and reads no file.
package seed

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const (
	// ListName is the list's file; its signature has trust.SignatureSuffix behind
	// it.
	ListName = "release.json"
	// MaxList bounds it, in bytes.
	MaxList = 256 << 10
	// FloorFolder has the tarball.
	FloorFolder = "floor"

	schema   = 1
	maxFiles = 256
	maxSize  = 8 << 30 // what a bundle can carry
)

// A List is what is served to a machine of one architecture.
type List struct {
	Schema int `json:"schema"`
	// Name, Version, Counter and Architecture are the bundle's.
	Name         string `json:"name"`
	Version      string `json:"version"`
	Counter      uint64 `json:"counter"`
	Architecture string `json:"architecture"`
	// PackageKey is the fingerprint of the OpenPGP key that packages and database
	// are signed under.
	PackageKey string `json:"package_key"`
	// Files are sorted by name.
	Files []File `json:"files"`
}

// A File is "arch/ARCHITECTURE/NAME" or "floor/NAME".
type File struct {
	Name string `json:"name"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// SHA256 is in hex.
	SHA256 string `json:"sha256"`
}

// Digest is that of the file's content.
func (f File) Digest() digest.Digest { return digest.NewDigestFromEncoded(digest.SHA256, f.SHA256) }

// Base is the last part of the file's name.
func (f File) Base() string { return path.Base(f.Name) }

// Encode writes the list. One that Parse would not take is an error.
func (l List) Encode() ([]byte, error) {
	l.Schema = schema
	b, err := canonical.Marshal(l)
	if err == nil {
		_, err = Parse(b)
	}
	return b, err
}

// Parse reads what Encode wrote. That says nothing about who wrote it.
func Parse(b []byte) (*List, error) {
	l := new(List)
	if len(b) > MaxList {
		return nil, fault.Refusedf("it has more than %d bytes", MaxList)
	}
	if err := canonical.Unmarshal(b, l); err != nil {
		return nil, fault.Refusedf("%w", err)
	}
	return l, l.check()
}

// Verify reads a list that a trusted release key signed.
func Verify(list, signature []byte, p *trust.Policy) (*List, error) {
	if _, err := p.Verify(digest.FromBytes(list), [][]byte{signature}, trust.ScopeRelease); err != nil {
		return nil, err
	}
	return Parse(list)
}

// Floor is the tarball.
func (l *List) Floor() File { return l.tarballs()[0] }

// Keyring has the public keys of packages, in the form that pacman-key(8) adds, for a
// machine that has none of ours.
func (l *List) Keyring() File {
	f, _ := l.file(KeyringName(l.Architecture))
	return f
}

// KeyringName is the keyring's: it lies in the repository, beside what it is for.
func KeyringName(architecture string) string { return "arch/" + architecture + "/nox-mesh.gpg" }

var (
	plain       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9@._+:-]{0,254}$`)
	fingerprint = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

func (l *List) check() error {
	switch {
	case l.Schema != schema:
		return fault.Refusedf("schema %d is not known here", l.Schema)
	case !plain.MatchString(l.Name) || !plain.MatchString(l.Version) || !plain.MatchString(l.Architecture):
		return fault.Refusedf("its name, version or architecture is not plain")
	case !fingerprint.MatchString(l.PackageKey):
		return fault.Refusedf("%.80q is no fingerprint of a key", l.PackageKey)
	case len(l.Files) > maxFiles:
		return fault.Refusedf("it lists more than %d files", maxFiles)
	}
	for i, f := range l.Files {
		folder, name := path.Split(f.Name)
		switch {
		case folder != "arch/"+l.Architecture+"/" && folder != FloorFolder+"/" || !plain.MatchString(name):
			return fault.Refusedf("it lists %.300q, which is none of its places", f.Name)
		case i > 0 && l.Files[i-1].Name >= f.Name:
			return fault.Refusedf("it lists %q twice, or not in order", f.Name)
		case !canonical.Hex(f.SHA256) || f.Size < 0 || f.Size >= maxSize:
			return fault.Refusedf("it says no size and SHA-256 of %q", f.Name)
		}
	}
	return l.complete()
}

// complete holds that a machine finds here what it will ask for.
func (l *List) complete() error {
	repository := "arch/" + l.Architecture + "/"
	needs := []string{repository + "nox-mesh.db", KeyringName(l.Architecture)}
	host := false
	for _, f := range l.Files {
		isPackage := trust.IsPackage(f.Name)
		if isPackage || strings.HasSuffix(f.Name, ".db") || strings.HasSuffix(f.Name, ".files") {
			needs = append(needs, f.Name+trust.PackageSignatureSuffix)
		}
		host = host || isPackage && strings.HasPrefix(f.Base(), "nox-mesh-host-")
	}
	floors := l.tarballs()
	if len(floors) != 1 {
		return fault.Refusedf("it lists %d tarballs, not one", len(floors))
	}
	if !host {
		return fault.Refusedf("it lists no package of the host")
	}
	for _, name := range append(needs, floors[0].Name+trust.SignatureSuffix) {
		if _, ok := l.file(name); !ok {
			return fault.Refusedf("it does not list %q", name)
		}
	}
	return nil
}

func (l *List) tarballs() (out []File) {
	for _, f := range l.Files {
		if f.Name == fmt.Sprintf("%s/nox-mesh-host-%s-linux-%s.tar.gz", FloorFolder, l.Version, l.Architecture) {
			out = append(out, f)
		}
	}
	return out
}

func (l *List) file(name string) (File, bool) {
	for _, f := range l.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}
