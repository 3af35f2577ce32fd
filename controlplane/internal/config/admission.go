package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/claim"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// policy reads the [[admission]] tables.
func policy(v any) (admission.Policy, error) {
	tables, ok := v.([]map[string]any)
	if !ok {
		return nil, fault.Refusedf("admission: is no list of tables; begin each rule with [[admission]]")
	}
	var out admission.Policy
	for i, t := range tables {
		r, err := rule(t)
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			return nil, fault.Refusedf("admission rule %d: %w", i+1, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func rule(t map[string]any) (r admission.Rule, err error) {
	into := map[string]*string{"hostname": &r.Hostname, "tag": &r.Tag, "token": &r.Token, "reason": &r.Reason, "decision": (*string)(&r.Decision)}
	for _, key := range slices.Sorted(maps.Keys(t)) {
		if key == "profile" {
			if r.Profile, err = claims(t[key]); err != nil {
				return r, err
			}
			continue
		}
		to := into[key]
		if to == nil {
			return r, fault.Refusedf("the key %q is not known", key)
		}
		if *to, err = text(key, t[key]); err != nil {
			return r, err
		}
	}
	return r, nil
}

func claims(v any) ([]claim.Claim, error) {
	t, ok := v.(map[string]any)
	if !ok {
		return nil, fault.Refusedf("profile: is no table; write profile.KEY = \"V\"")
	}
	var out []claim.Claim
	for _, key := range slices.Sorted(maps.Keys(t)) {
		s, err := text("profile."+key, t[key])
		if err != nil {
			return nil, err
		}
		c, ok := claim.New(key, s)
		if !ok {
			return nil, fault.Refusedf("profile.%s: a profile has no %q; it has %s", key, key, strings.Join(claim.Keys(), ", "))
		}
		out = append(out, c)
	}
	return out, nil
}

// text is a value that is there: an empty one would ask nothing.
func text(key string, v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", fault.Refusedf("%s: %v is not a string", key, v)
	}
	if s == "" {
		return "", fault.Refusedf("%s: is empty", key)
	}
	return s, nil
}
