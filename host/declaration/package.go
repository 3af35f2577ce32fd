package declaration

import (
	"regexp"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Package is a package of the machine's package manager.
type Package struct {
	Name string
	// Version is the one it shall have, spelled as its manager does; "" is any.
	Version string
	// Source is the digest of the package in the content store; "" lets the
	// manager get it from where the machine is configured to.
	Source digest.Digest
	// Signature is the digest of its detached signature in the content store.
	// Which managers want one is for the host to say.
	Signature digest.Digest
}

var (
	// packageRule is what PKGBUILD(5) and Debian's policy (5.6.1) take.
	packageRule = &rule{
		what: "the name of a package", like: "htop", max: 128,
		pattern: regexp.MustCompile(`^[A-Za-z0-9@_+][A-Za-z0-9@._+-]*$`),
	}
	// versionRule is what vercmp(8) and deb-version(7) take.
	versionRule = &rule{
		what: "a version", like: "1.1.0-1", max: 128,
		pattern: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+~:_^@-]*$`),
	}
)

func (p *Package) fields() []field {
	return []field{
		{"name", text[string]{&p.Name, packageRule, ""}, true, "The package, as the machine's package manager calls it."},
		{"version", text[string]{&p.Version, versionRule, ""}, false, "The version it shall have, as the package manager spells it (with the release: \"1.1.0-1\"). Any, when nothing is said."},
		{"source", text[digest.Digest]{&p.Source, digestRule, ""}, false, "The digest of the package, which is in the content store. Without it the package manager gets it from its repositories."},
		{"signature", text[digest.Digest]{&p.Signature, digestRule, ""}, false, "The digest of the package's detached signature, which is in the content store. pacman wants it wherever there is a source."},
	}
}

func (p *Package) check(o *object) {
	switch {
	case o.has("signature") && !o.has("source"):
		o.fault("signature", "is of no source")
	case p.Signature != "" && p.Signature == p.Source:
		o.fault("signature", "is the digest of the source itself")
	}
}

func (p *Package) rules() node {
	return node{
		"description":       "A package of the machine's package manager. The host's own may be declared: that is how it is upgraded.",
		"dependentRequired": node{"signature": []string{"source"}},
	}
}

func (p *Package) name() string                           { return p.Name }
func (p *Package) claims() []string                       { return nil }
func (p *Package) sources() []digest.Digest               { return digests(p.Source, p.Signature) }
func (p *Package) own([]layout.Own, func(string, string)) {}
