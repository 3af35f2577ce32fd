package bundle

import (
	"errors"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// again is what to do about a file that is not what its publisher made.
const again = "copy or download the file again"

// packedAgain is what to do about one that is whole, but that another program wrote
// as a tar again: it is no bundle, though all of one is in it.
func packedAgain(err error) error {
	return fault.Refusedf("%w", err).
		Hint("it was packed again by another tar: take the publisher's file, or unpack it and make one with mesh-release bundle import")
}

// advise gives a refusal of the bundle a remedy, unless who refused knew one.
func advise(err error) error {
	if fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) != "" {
		return err
	}
	remedy := again
	for _, a := range []struct {
		kind   error
		remedy string
	}{
		{trust.ErrRevokedKey, "fetch a release that was made since: what this key signed counts no more"},
		{trust.ErrUnknownKey, "fetch the release of the publisher who is trusted here, or name whom to trust with --trust DIR"},
		{trust.ErrNoSignature, "fetch the publisher's file: this one was never signed, or its signature was taken out"},
	} {
		if errors.Is(err, a.kind) {
			remedy = a.remedy
			break
		}
	}
	return fault.Refusedf("%w", err).Hint("%s", remedy)
}

// publishers is a fault in what a trusted key signed: no copy of the file is any
// better.
func publishers(err error) error {
	if err == nil || fault.KindOf(err) != fault.Refused {
		return err
	}
	return fault.Refusedf("%w", err).Hint("it was signed like this: ask its publisher for another")
}
