// Package claim is what a rule may ask of a profile: where a module is placed and
// who is admitted are asked in the same words, profile.KEY=V.
//
// A profile is what a machine says about itself. A rule that holds proves nothing;
// it sorts machines that mean well.
package claim

import (
	"maps"
	"slices"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

var keys = map[string]func(*profile.Profile) string{
	"architecture":         func(p *profile.Profile) string { return bundle.Architecture(p.Architecture) },
	"distribution":         func(p *profile.Profile) string { return p.Distribution },
	"distribution_version": func(p *profile.Profile) string { return p.DistributionVersion },
	"init":                 func(p *profile.Profile) string { return p.Init },
	"package_manager":      func(p *profile.Profile) string { return p.PackageManager },
	"runtime":              func(p *profile.Profile) string { return p.Runtime },
	"virtualisation":       func(p *profile.Profile) string { return p.Virtualisation },
	"container":            func(p *profile.Profile) string { return p.Container },
}

// A Claim is one thing a profile may say.
type Claim struct{ key, value string }

// New returns the claim that a profile says value of key; ok is false when a
// profile has no such key (Keys has them).
func New(key, value string) (c Claim, ok bool) {
	if keys[key] == nil {
		return Claim{}, false
	}
	if key == "architecture" {
		value = bundle.Architecture(value) // both spellings name the same machines
	}
	return Claim{key, value}, true
}

// Keys are what may be asked, sorted.
func Keys() []string { return slices.Sorted(maps.Keys(keys)) }

// Holds says whether a profile says so.
func (c Claim) Holds(p *profile.Profile) bool { return keys[c.key](p) == c.value }

// String is the claim as a person writes it.
func (c Claim) String() string { return "profile." + c.key + "=" + c.value }
