package recipe

import (
	"errors"
	"fmt"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// checkSignature holds that the signature of a package is one that its machine will
// take: made by the publisher's package key, it must be good. One by another key, a
// distribution's for one, nobody here can judge; that is said.
func (b *building) checkSignature(p Package) error {
	s, err := input.ReadFile(p.Signature, trust.MaxPackageSignature)
	switch {
	case err != nil:
		return err
	case len(s) == 0 || s[0] < 0x80: // RFC 9580, 4.2: bit 7 is set in every packet
		return fault.Refusedf("%q is no binary OpenPGP signature", p.Signature).Hint("sign with \"gpg --detach-sign\", without --armor")
	case b.Policy == nil:
		b.note("the signature of package %q was not verified: no keys are named", p.Title)
		return nil
	}
	f, _, err := input.Regular(p.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = b.Policy.VerifyPackage(b.files.of(p.Title, f), s, trust.Times{Clock: b.Now})
	if errors.Is(err, trust.ErrUnknownKey) {
		b.note("the signature of package %q was not verified: its key is not the publisher's, pacman on the machine must know it", p.Title)
		return nil
	}
	return err
}

// note says what a person should know, and nothing is refused for.
func (b *building) note(format string, args ...any) {
	if b.Note != nil {
		b.Note(fmt.Sprintf(format, args...))
	}
}
