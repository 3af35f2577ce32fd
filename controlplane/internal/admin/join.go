package admin

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strconv"
	"strings"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/seed"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/repository"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Repository is what new machines are served, and where; Listen is "" when nothing
// is.
type Repository struct {
	Listen string               `json:"listen"`
	Serves []repository.Release `json:"serves,omitempty"`
}

func (d *Desk) repository() (r Repository, faults []error) {
	if len(d.RepositoryServed) == 0 {
		return r, nil
	}
	r.Listen = d.RepositoryServed.String()
	r.Serves, faults = d.Repository.Serves()
	return r, faults
}

// Joining asks how a machine comes to its host from here. "" is what the control
// plane would say by itself.
type Joining struct {
	Architecture string `json:"architecture,omitempty"`
	// Address is HOST or HOST:PORT.
	Address string `json:"address,omitempty"`
}

// Joined is the answer: where, and the signed list of what is there. Whoever asks
// verifies it, by the Roots that lead from what the machine trusts to what the
// control plane does: what it says of itself is no reason to believe it.
type Joined struct {
	// Addresses are "HOST:PORT", the best first.
	Addresses []string `json:"addresses"`
	List      []byte   `json:"list"`
	Signature []byte   `json:"signature"`
	Roots     [][]byte `json:"roots,omitempty"`
}

// Port is the one the documentation has for repository_listen.
const repositoryPort = 7480

func (d *Desk) join(_ context.Context, q Joining) (a Joined, err error) {
	if len(d.RepositoryServed) == 0 {
		return a, fault.Refusedf("cannot say how a machine joins: new machines are served nothing from here").
			Hint("put the line `repository_listen = \"[::]:%d\"` into %q and start the control plane again", repositoryPort, d.Layout.ControllerConfig())
	}
	served, faults := d.Repository.Serves()
	arch := bundle.Architecture(q.Architecture)
	if arch == "" && len(served) > 0 {
		arch = served[0].Architecture
		for _, r := range served {
			if r.Architecture == bundle.Architecture(runtime.GOARCH) {
				arch = r.Architecture
			}
		}
	}
	if a.List, a.Signature = d.Repository.List(arch); a.List == nil {
		return a, nothingServed(arch, served, faults)
	}
	if a.Addresses, err = d.repositoryAddresses(q.Address); err != nil {
		return a, err
	}
	policy, err := Trusted(d.Layout)
	if err != nil {
		return a, err
	}
	a.Roots = policy.Chain()
	return a, nil
}

func nothingServed(arch string, served []repository.Release, faults []error) error {
	if len(served) == 0 && len(faults) > 0 {
		return fault.Failedf("cannot say how a machine joins: %w", faults[0])
	}
	if arch == "" {
		arch = "any architecture"
	}
	e := fault.Refusedf("cannot say how a machine joins: there is no release for %s here", arch)
	if len(served) > 0 {
		var has []string
		for _, r := range served {
			has = append(has, r.Architecture)
		}
		e = fault.Refusedf("cannot say how a machine joins: there is no release for %s here, but for %s", arch, strings.Join(has, ", "))
	}
	return e.Hint("bring it with mesh-controller push, from the first node's bundle of a release")
}

// repositoryAddresses are where new machines can be served: by the hosts that
// nodes find the control plane at, or the one that is given.
func (d *Desk) repositoryAddresses(given string) ([]string, error) {
	var hosts []string
	if given != "" {
		if _, _, err := net.SplitHostPort(given); err == nil {
			return []string{given}, d.checkRepository(given)
		}
		hosts = []string{strings.Trim(given, "[]")}
	} else {
		as, err := d.addresses()
		if err != nil {
			return nil, err
		}
		for _, a := range as.Addresses {
			host, _, _ := net.SplitHostPort(a)
			hosts = append(hosts, host)
		}
	}
	var out []string
	var misses []error
	for _, host := range hosts {
		var miss error
		for _, l := range d.RepositoryServed {
			a := net.JoinHostPort(host, strconv.Itoa(int(l.Port())))
			if miss = d.checkRepository(a); miss == nil {
				out = append(out, a)
				break
			}
		}
		misses = append(misses, miss)
	}
	if len(out) == 0 && given == "" {
		return d.RepositoryServed.Find()
	}
	if len(out) == 0 {
		return nil, errors.Join(misses...)
	}
	return out, nil
}

// checkRepository refuses an address that cannot lead to the repository.
func (d *Desk) checkRepository(a string) error {
	if err := d.RepositoryServed.Check(a); err != nil {
		if fault.KindOf(err) == fault.Refused {
			return fault.Refusedf("%w", err).Hint("set repository_listen in controller.toml and start it again, or use another --address")
		}
		return err
	}
	return nil
}

// Believe verifies an answer by what the machine trusts, and returns its list. Of an
// address it holds only that it is one: where it leads, the list decides what is
// taken from there.
func (a Joined) Believe(machine *trust.Policy) (*seed.List, error) {
	if err := link.CheckAddresses(a.Addresses); err != nil {
		return nil, fault.Refusedf("%w", err)
	}
	policy, err := machine.Advance(a.Roots)
	if err != nil {
		return nil, err
	}
	return seed.Verify(a.List, a.Signature, policy)
}
