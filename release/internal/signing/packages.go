package signing

import (
	"io"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
)

// With signs packages and databases with a package key.
func With(key *keys.PackageKey) Packages { return withKey{key} }

type withKey struct{ key *keys.PackageKey }

func (s withKey) Sign(message io.Reader, date time.Time) ([]byte, error) {
	return keys.SignPackage(s.key, message, date)
}

// A Verifier takes what the release root in force names for packages.
type Verifier struct{ Policy *trust.Policy }

// Verify returns no error when a trusted package key signed the message.
func (v Verifier) Verify(message io.Reader, signature []byte) error {
	_, err := v.Policy.VerifyPackage(message, signature, trust.Times{Clock: clock.System.Now()})
	return err
}
