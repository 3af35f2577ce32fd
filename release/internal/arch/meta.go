package arch

import (
	"fmt"
	"regexp"

	"github.com/goreleaser/nfpm/v2"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Extension is how the file name of a package ends.
const Extension = ".pkg.tar.zst"

// Meta is what a package says of itself: its .PKGINFO and the list of its files.
type Meta struct {
	Name, Base string
	// Version is as Version.String writes it.
	Version   string
	Desc, URL string
	// BuildDate is in seconds since 1970.
	BuildDate int64
	Packager  string
	// Size is that of the installed files, in bytes.
	Size int64
	// Arch is "any" or as uname -m says it.
	Arch string

	License, Replaces, Groups, Conflicts, Provides, Backup []string
	Depends, OptDepends, MakeDepends, CheckDepends         []string
	// XData are "NAME=VALUE"; one is pkgtype.
	XData []string

	// Files are the paths of the archive in its order, relative; a directory ends
	// in a slash. Metadata (.PKGINFO …) is not among them.
	Files []string
}

// FileName returns the name a package file must have.
func (m Meta) FileName() string {
	return fmt.Sprintf("%s-%s-%s%s", m.Name, m.Version, m.Arch, Extension)
}

var (
	namePattern = regexp.MustCompile(`^[0-9A-Za-z@_+][0-9A-Za-z@._+-]*$`)
	archPattern = regexp.MustCompile(`^[0-9a-z][0-9a-z_]*$`)
)

// checkNames holds the rules of what becomes a file name.
func (m Meta) checkNames() error {
	switch {
	case len(m.Name) > 128 || !namePattern.MatchString(m.Name):
		return fault.Usagef("the name %.80q is not letters, digits and \"@._+-\"", m.Name)
	case len(m.Base) > 128 || m.Base != "" && !namePattern.MatchString(m.Base):
		return fault.Usagef("the base %.80q is not a name", m.Base)
	case len(m.Arch) > 32 || !archPattern.MatchString(m.Arch):
		return fault.Usagef("the architecture %.80q is not one", m.Arch)
	}
	return nil
}

// architectures are Go's and nfpm's names for what uname -m says.
var architectures = map[string]string{"all": "any", "amd64": "x86_64", "arm64": "aarch64", "386": "i686"}

func architecture(info *nfpm.Info) string {
	if info.ArchLinux.Arch != "" {
		return info.ArchLinux.Arch
	}
	if a, ok := architectures[info.Arch]; ok {
		return a
	}
	return info.Arch
}
