package client

import (
	"crypto/x509"
	"slices"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// keptPins is how many mesh roots a node knows: the newest, and the one before, which a
// control plane that is restored from a backup may still have.
const keptPins = 2

// learn takes up the root that signed for the peer of a handshake that was verified:
// the chain led from it to a root this node knows. It reports whether that is news. The
// certificate of the node is under an older one then, and is to be renewed.
func (id *Identity) learn(peer []*x509.Certificate) bool {
	if len(peer) < 2 || peer[0].CheckSignatureFrom(peer[1]) != nil {
		return false
	}
	pin := link.Pin(peer[1])
	if len(id.Pins) > 0 && id.Pins[0] == pin {
		return false
	}
	id.Pins = append([]string{pin}, without(id.Pins, []string{pin})...)
	return true
}

// forgetRoots lets go of roots that are older than those to be kept, as far as the
// node's own certificate does without them.
func (id *Identity) forgetRoots() {
	if len(id.Pins) <= keptPins {
		return
	}
	all := id.Pins
	id.Pins = slices.Clone(all[:keptPins])
	if id.checkCertificate() != nil {
		id.Pins = all
	}
}

// underNewest says whether the node's certificate was made under the newest root that
// it knows.
func (id *Identity) underNewest() bool {
	if len(id.Chain) == 0 || len(id.Pins) == 0 {
		return true
	}
	c, err := x509.ParseCertificate(id.Chain[0])
	return err == nil && link.Pin(c) == id.Pins[0]
}
