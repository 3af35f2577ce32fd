package pkgbuild

import _ "embed"

// The places of the packages, relative to "/". A floor has others; see the
// installer.
const (
	// HostPackage is the name of the host's package.
	HostPackage = "nox-mesh-host"
	// PackagedHost is its binary.
	PackagedHost = "/usr/bin/mesh-host"
	// Homepage and Packager are what every package says of its origin.
	Homepage = "https://github.com/nox-mesh/nox-mesh"
	Packager = "nox-mesh <packages@nox-mesh.invalid>"
	// License is the SPDX identifier of the licence.
	License = "Apache-2.0"
)

// Descriptions are the one line that a package says of itself, by its name.
var Descriptions = map[string]string{
	"nox-mesh-host":       "Applies signed declarations to this machine and keeps it as declared",
	"nox-mesh-controller": "Control plane of a nox-mesh: admits machines and says what each shall be",
	"nox-mesh-keyring":    "Keys with which the packages of nox-mesh are signed",
}

var (
	//go:embed PKGBUILD
	recipe []byte
	//go:embed nox-mesh-host.install
	hostInstall []byte
	//go:embed nox-mesh-keyring.install
	keyringInstall []byte
	//go:embed nox-mesh-host.tmpfiles
	hostTmpfiles []byte
)

// Recipe returns the PKGBUILD that builds nox-mesh-host from source.
func Recipe() []byte { return append([]byte(nil), recipe...) }

// HostInstall returns the scriptlet of nox-mesh-host, PKGBUILD(5).
func HostInstall() []byte { return append([]byte(nil), hostInstall...) }

// KeyringInstall returns the scriptlet of nox-mesh-keyring.
func KeyringInstall() []byte { return append([]byte(nil), keyringInstall...) }

// HostTmpfiles returns /usr/lib/tmpfiles.d/nox-mesh-host.conf, tmpfiles.d(5).
func HostTmpfiles() []byte { return append([]byte(nil), hostTmpfiles...) }
