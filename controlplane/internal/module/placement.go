package module

import (
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/claim"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A rule is one of "every", "node=N", "tag=T", "profile.KEY=V". The profile is the
// one with which a person or a token admitted the node.
type rule struct {
	kind, value string
	claim       claim.Claim
}

// A placement is rules of which one must hold; none holds nowhere.
type placement []rule

func parseRule(s string) (rule, error) {
	if s == "every" {
		return rule{kind: "every"}, nil
	}
	what, value, ok := strings.Cut(s, "=")
	if !ok || value == "" {
		return rule{}, badRule(s)
	}
	if key, ok := strings.CutPrefix(what, "profile."); ok {
		c, ok := claim.New(key, value)
		if !ok {
			return rule{}, fault.Usagef("cannot place by %q: a profile has no %q", s, key).
				Hint("use one of %s", strings.Join(claim.Keys(), ", "))
		}
		return rule{kind: "profile", claim: c}, nil
	}
	if what != "node" && what != "tag" {
		return rule{}, badRule(s)
	}
	return rule{kind: what, value: value}, nil
}

func badRule(s string) error {
	return fault.Usagef("cannot place by %q: it is not a rule", s).
		Hint("write --on every, node=N, tag=T or profile.KEY=V")
}

func parsePlacement(rules []string) (placement, error) {
	out := make(placement, len(rules))
	for i, s := range rules {
		var err error
		if out[i], err = parseRule(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// holds says whether a module so placed is present on a node.
func (p placement) holds(n *state.Node) bool {
	return slices.ContainsFunc(p, func(r rule) bool {
		switch r.kind {
		case "every":
			return true
		case "node":
			return n.Name == r.value
		case "tag":
			return slices.Contains(n.Tags, r.value)
		}
		return r.claim.Holds(&n.Profile)
	})
}

// within returns the members that one of ps may hold, and perhaps others, by id:
// all of them, unless each rule names its node. Reading ten thousand nodes takes
// longer than all else that becomes of a module on one.
func within(tx *state.Tx, ps ...placement) ([]*state.Node, error) {
	var out []*state.Node
	for _, p := range ps {
		for _, r := range p {
			if r.kind != "node" {
				return members(tx)
			}
			n, err := tx.NodeByName(r.value)
			if err != nil {
				return nil, err
			}
			if n != nil && n.Member() && !slices.ContainsFunc(out, func(o *state.Node) bool { return o.ID == n.ID }) {
				out = append(out, n)
			}
		}
	}
	slices.SortFunc(out, func(a, b *state.Node) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// check refuses a node nobody has admitted (the name could go to any machine
// later), and a secret that would go wherever a machine's own claims lead. as
// is how the rules were written.
func (p placement) check(tx *state.Tx, as []string, secret bool) error {
	for i, r := range p {
		if r.kind == "node" {
			n, err := tx.NodeByName(r.value)
			if err != nil {
				return err
			}
			if n == nil {
				return fault.Refusedf("cannot place by %q: no node has that name", as[i]).
					Hint("run `mesh-controller nodes` for the names")
			}
		}
		if secret && r.kind != "node" && r.kind != "tag" {
			return fault.Refusedf("cannot place by %q: the module holds a secret", as[i]).
				Hint("place it by node=N or tag=T")
		}
	}
	return nil
}
