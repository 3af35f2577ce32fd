package trust

import (
	"errors"
	"io/fs"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// Machine is what a machine trusts by itself: the release root in force (its
// State), which the chains that the software brought may move along, and what
// the administrator added. The order decides: the first root that is known is
// in force, and nothing that lies on the disk can put another in its place. The
// error of a machine that trusts nobody has ErrEmpty in its chain.
//
// A caller who may not read the state, an ordinary user, sees what the software
// brought.
func Machine(l layout.Layout, prefixes ...string) (*Policy, error) {
	var parts []*Policy
	state, err := ReadState(l.TrustState())
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	if len(state.Root) > 0 {
		p, err := FromRoot(state.Root)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	var dirs []string
	for _, prefix := range append(l.Prefixes(), prefixes...) {
		dirs = append(dirs, l.ShippedTrust(prefix))
	}
	for _, dir := range append(dirs, l.AdminTrust()) {
		p, err := LoadDir(dir)
		if errors.Is(err, ErrEmpty) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		return nil, fault.Refusedf("cannot verify anything: this machine trusts no release root and no key: %w", ErrEmpty).
			Hint("install the host from a release, or name what to trust with --trust DIR")
	}
	return Merge(parts...)
}
