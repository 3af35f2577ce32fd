package service

import (
	"cmp"
	"slices"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// worst is how bad it is that a resource is so, the worst first. What is not here
// is the last.
var worst = []string{
	string(declaration.Failed), failing, unknown, drifted, string(declaration.Skipped), string(declaration.Held), string(declaration.Unsupported),
}

// told puts the worst first, and adds since when each is not as declared.
func (s *Service) told(off []Off) []Off {
	rank := func(o Off) int {
		if i := slices.Index(worst, o.There); i >= 0 {
			return i
		}
		return len(worst)
	}
	for i := range off {
		k := s.tally.streak(off[i].Key)
		off[i].Since, off[i].Times = k.since, k.passes
	}
	slices.SortStableFunc(off, func(a, b Off) int { return cmp.Compare(rank(a), rank(b)) })
	return off
}
