package admin

import (
	"errors"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// trustState is what this control plane remembers of the releases it took. It is
// its own: the host's is the host's alone to read.
func trustState(l layout.Layout) string { return filepath.Join(l.ControllerState(), "trust.json") }

// policy is what is trusted for one push: the release root that an earlier push
// moved to and what the machine trusts, or what a person named.
func (d *Desk) policy(q Push) (p *trust.Policy, err error) {
	if q.Trust != "" {
		p, err = trust.LoadDir(q.Trust)
	} else {
		p, err = Trusted(d.Layout)
	}
	if err != nil && (q.Key == "" || !errors.Is(err, trust.ErrEmpty)) {
		return nil, err
	}
	if q.Key == "" {
		return p, nil
	}
	key, err := trust.LoadKey(q.Key)
	if err != nil {
		return nil, err
	}
	return trust.Merge(p, key)
}

// Trusted is what the control plane trusts by itself.
func Trusted(l layout.Layout) (*trust.Policy, error) {
	known, err := trust.ReadState(trustState(l))
	if err != nil {
		return nil, err
	}
	machine, err := trust.Machine(l)
	if len(known.Root) == 0 || err != nil && !errors.Is(err, trust.ErrEmpty) {
		return machine, err
	}
	own, err := trust.FromRoot(known.Root)
	if err != nil {
		return nil, err
	}
	return trust.Merge(own, machine)
}
