package module

import (
	"maps"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// profileKeys are what a rule may ask of a profile, as they were when a person
// or a token admitted the node.
var profileKeys = map[string]func(*profile.Profile) string{
	"architecture":         func(p *profile.Profile) string { return p.Architecture },
	"distribution":         func(p *profile.Profile) string { return p.Distribution },
	"distribution_version": func(p *profile.Profile) string { return p.DistributionVersion },
	"init":                 func(p *profile.Profile) string { return p.Init },
	"package_manager":      func(p *profile.Profile) string { return p.PackageManager },
	"runtime":              func(p *profile.Profile) string { return p.Runtime },
}

// A rule is one of "every", "node=N", "tag=T", "profile.KEY=V".
type rule struct{ kind, key, value string }

func parseRule(s string) (rule, error) {
	if s == "every" {
		return rule{kind: "every"}, nil
	}
	what, value, ok := strings.Cut(s, "=")
	if !ok || value == "" {
		return rule{}, badRule(s)
	}
	if key, ok := strings.CutPrefix(what, "profile."); ok {
		if profileKeys[key] == nil {
			return rule{}, fault.Usagef("cannot place by %q: a profile has no %q", s, key).
				Hint("use one of %s", strings.Join(slices.Sorted(maps.Keys(profileKeys)), ", "))
		}
		return rule{"profile", key, value}, nil
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

// present reports whether one of the rules holds for a node.
func present(placement []string, n *state.Node) bool {
	for _, s := range placement {
		r, err := parseRule(s)
		if err != nil {
			continue // was refused when it was declared
		}
		switch r.kind {
		case "every":
			return true
		case "node":
			if n.Name == r.value {
				return true
			}
		case "tag":
			if slices.Contains(n.Tags, r.value) {
				return true
			}
		case "profile":
			if profileKeys[r.key](&n.Profile) == r.value {
				return true
			}
		}
	}
	return false
}

// checkPlacement refuses what is not a rule, a node nobody has admitted (the
// name could go to any machine later), and a secret that would go wherever a
// machine's own claims lead.
func checkPlacement(tx *state.Tx, placement []string, secret bool) error {
	for _, s := range placement {
		r, err := parseRule(s)
		if err != nil {
			return err
		}
		if r.kind == "node" {
			n, err := tx.NodeByName(r.value)
			if err != nil {
				return err
			}
			if n == nil {
				return fault.Refusedf("cannot place by %q: no node has that name", s).
					Hint("run `mesh-controller nodes` for the names")
			}
		}
		if secret && r.kind != "node" && r.kind != "tag" {
			return fault.Refusedf("cannot place by %q: the module holds a secret", s).
				Hint("place it by node=N or tag=T")
		}
	}
	return nil
}
