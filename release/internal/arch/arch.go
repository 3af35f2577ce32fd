// Package arch packs for pacman: it writes Arch packages and reads them.
//
// The model of a package is nfpm's (nfpm.Info, files.Contents); the writer is
// our own. It promises:
//
//   - the same model and files are the same bytes, whatever the machine, user,
//     umask, time zone, number of processors or order of a directory;
//   - what pacman checks can be checked: the .MTREE names each entry of the
//     archive and no other, with owner, mode, size and both digests;
//   - a file with a package's name is a whole package: it is written under
//     another name, read back, compared and made durable first. A source that
//     changes meanwhile, a full disk or an error of the last block leave nothing.
//
// It signs nothing, and it does not look at programs: no strip, no search for
// libraries. Read is strict and bounded; its input may come from anybody.
//
// The formats: alpm-pkginfo(5) version 2, alpm-buildinfo(5) version 2,
// alpm-mtree(5), makepkg(8).
package arch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// Format is the name under which nfpm knows the packager.
const Format = "archlinux"

// A Package is what Write packs.
type Package struct {
	// Info is the package in nfpm's model. It is not changed. Its MTime is the
	// one time of everything, to the second, and must be set.
	Info *nfpm.Info
	// Install is the text of the scriptlet, as PKGBUILD(5) says of "install".
	// Without it the functions are made of Info.Scripts and of
	// Info.ArchLinux.Scripts, which are names of files with their bodies.
	Install []byte
	// Recipe is the PKGBUILD, whose digest .BUILDINFO holds; may be nil.
	Recipe []byte
	// MakeDepends are the packages that building took, for which nfpm has no
	// place.
	MakeDepends []string
}

// Name returns the file name of the package: "NAME-VERSION-REL-ARCH.pkg.tar.zst",
// with "EPOCH:" before the version when there is one.
func (p Package) Name() (string, error) {
	v, err := VersionOf(p.Info)
	if err != nil {
		return "", err
	}
	m := Meta{Name: p.Info.Name, Version: v.String(), Arch: architecture(p.Info)}
	if err := m.checkNames(); err != nil {
		return "", fmt.Errorf("cannot pack %.80q: %w", p.Info.Name, err)
	}
	return m.FileName(), nil
}

// Write packs p into the directory dir under its Name, whole or not at all, with
// mode 0644. It returns what the finished file says of itself, read back.
func Write(ctx context.Context, dir string, p Package) (Meta, error) {
	name, err := p.Name()
	if err != nil {
		return Meta{}, err
	}
	m, err := write(ctx, dir, name, p)
	if err != nil {
		return Meta{}, fmt.Errorf("cannot pack %q: %w", name, err)
	}
	return m, nil
}

func write(ctx context.Context, dir, name string, p Package) (Meta, error) {
	d, err := durable.OpenDir(dir)
	if err != nil {
		return Meta{}, err
	}
	defer d.Close()
	out, err := d.Create(name, durable.Perm(0o644))
	if err != nil {
		return Meta{}, err
	}
	defer out.Abort()
	sum := sha256.New()
	plan, err := pack(ctx, io.MultiWriter(out, sum), p)
	if err != nil {
		return Meta{}, err
	}
	m, err := readBack(filepath.Join(dir, durable.TempName(name)), sum, plan)
	if err != nil {
		return Meta{}, fmt.Errorf("reading it back: %w", err)
	}
	return m, out.Commit()
}

// readBack reads the file at path, which must be what was written and hold what
// was planned.
func readBack(path string, written hash.Hash, want *plan) (Meta, error) {
	f, err := os.Open(path)
	if err != nil {
		return Meta{}, err
	}
	defer f.Close()
	sum := sha256.New()
	m, found, err := readArchive(io.TeeReader(f, sum))
	if err != nil {
		return Meta{}, err
	}
	if string(sum.Sum(nil)) != string(written.Sum(nil)) {
		return Meta{}, fmt.Errorf("the file is not what was written")
	}
	return m, want.compare(found)
}

// Packager is the nfpm.Packager for Arch packages.
type Packager struct{}

// Register makes nfpm use Packager for "archlinux", in place of its own.
func Register() { nfpm.RegisterPackager(Format, Packager{}) }

// Package implements nfpm.Packager. What w got is a package only when the error
// is nil.
func (Packager) Package(info *nfpm.Info, w io.Writer) error {
	_, err := pack(context.Background(), w, Package{Info: info})
	if err != nil {
		return fmt.Errorf("cannot pack %q: %w", info.Name, err)
	}
	return nil
}

// ConventionalFileName implements nfpm.Packager. nfpm gives it no way to fail:
// for a package that cannot be packed it is "".
func (Packager) ConventionalFileName(info *nfpm.Info) string {
	name, err := Package{Info: info}.Name()
	if err != nil {
		return ""
	}
	return name
}

// ConventionalExtension implements nfpm.PackagerWithExtension.
func (Packager) ConventionalExtension() string { return Extension }
