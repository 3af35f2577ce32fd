package service

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// Override is what a person told a command to trust.
type Override struct {
	// Dir is trusted instead of the machine's trust (--trust).
	Dir string `json:"dir,omitempty"`
	// Key is a key file trusted for this call (--key).
	Key string `json:"key,omitempty"`
}

// Policy is what is trusted for one call: what the machine trusts, or what a
// person named.
func Policy(l layout.Layout, o Override) (*trust.Policy, error) {
	var policy *trust.Policy
	var err error
	if o.Dir != "" {
		policy, err = trust.LoadDir(o.Dir)
	} else {
		policy, err = trust.Machine(l)
	}
	if err != nil && (o.Key == "" || !errors.Is(err, trust.ErrEmpty)) {
		return nil, err
	}
	if o.Key == "" {
		return policy, nil
	}
	key, err := trust.LoadKey(o.Key)
	if err != nil {
		return nil, err
	}
	return trust.Merge(policy, key)
}

// named: a person said what to trust, for this call; nothing of it is kept.
func (o Override) named() bool { return o.Dir != "" || o.Key != "" }

// Admit decides on a bundle whose signature was verified, before anything of
// it is written: is it for this machine, and not older than what was applied?
func Admit(info *bundle.Info, counter uint64, allowRollback bool) error {
	if want := bundle.Architecture(runtime.GOARCH); info.Architecture != want {
		return fault.Refusedf("wrong architecture: bundle %q is for %s, this machine is %s", info.Name, info.Architecture, want).
			Hint("fetch the bundle for %s", want)
	}
	if info.Counter < counter && !allowRollback {
		return fault.Refusedf("older than what was applied: bundle %q has counter %d, %d was applied", info.Name, info.Counter, counter).
			Hint("fetch a newer one, or say --allow-rollback")
	}
	if version.Older(version.Running(), info.MinimumHost) {
		return fault.Refusedf("bundle %q needs mesh-host %s or newer, this is %s", info.Name, info.MinimumHost, version.Running()).
			Hint("install a newer mesh-host first")
	}
	return nil
}

// oneDeclaration returns the declaration a bundle carries: a host applies one.
func oneDeclaration(info *bundle.Info) ([]byte, error) {
	if n := len(info.Declarations); n != 1 {
		return nil, fault.Refusedf("bundle %q carries %d declarations; a machine takes one", info.Name, n)
	}
	doc, err := info.Declaration(info.Declarations[0].Digest)
	if err != nil {
		return nil, fmt.Errorf("cannot read the declaration of bundle %q: %w", info.Name, err)
	}
	return doc, nil
}
