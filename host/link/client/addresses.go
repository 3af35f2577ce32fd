package client

import (
	"slices"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// union is a, then what of b is not in it, without repetition and never more
// than link.MaxAddresses.
func union(a, b []string) []string {
	var out []string
	for _, s := range slices.Concat(a, b) {
		if !slices.Contains(out, s) && len(out) < link.MaxAddresses {
			out = append(out, s)
		}
	}
	return out
}

// without is what of a is not in b, without repetition.
func without(a, b []string) []string {
	var out []string
	for _, s := range a {
		if !slices.Contains(b, s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// order is where to look for the control plane: the last address that worked,
// the others, the candidates.
func (id *Identity) order(best string) []string {
	all := slices.Concat(id.Addresses, without(id.Candidates, id.Addresses))
	if i := slices.Index(all, best); i > 0 {
		all = slices.Insert(slices.Delete(all, i, i+1), 0, best)
	}
	return all
}

// worked notes that the control plane answered at address; it reports whether
// the identity has to be saved.
func (id *Identity) worked(address string) bool {
	if slices.Contains(id.Addresses, address) {
		return false
	}
	id.Addresses = union([]string{address}, id.Addresses)
	id.Candidates = without(id.Candidates, id.Addresses)
	return true
}

// announced notes where the control plane says it is; it reports whether the
// identity has to be saved.
func (id *Identity) announced(addresses []string) bool {
	candidates := without(addresses, id.Addresses)
	if slices.Equal(candidates, id.Candidates) {
		return false
	}
	id.Candidates = candidates
	return true
}
