package module

import (
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
)

// Needed is what of the content store a state names, within a transaction (Keeper).
func Needed(tx *state.Tx) (content.Kept, error) { return kept(tx) }

// Lacking returns the modules, and the bundles that are not placed, of whose content
// something is not there. What a machine brought along is on that machine, and was
// never here.
func Lacking(tx *state.Tx, has func(digest.Digest) bool) ([]string, error) {
	lacks := func(sources []digest.Digest) bool {
		for _, d := range sources {
			if !has(d) {
				return true
			}
		}
		return false
	}
	out := []string{}
	s, err := load(tx, time.Time{})
	if err != nil {
		return nil, err
	}
	for _, m := range s.modules {
		if m.From != "" {
			continue
		}
		d, err := s.document(m.key)
		if err != nil {
			return nil, err
		}
		if lacks(d.Sources()) {
			out = append(out, m.Name)
		}
	}
	pushed, err := tx.AllPushed()
	for _, p := range pushed {
		sources := []digest.Digest{digest.Digest(p.Bundle)}
		for _, d := range p.Sources {
			sources = append(sources, digest.Digest(d))
		}
		if lacks(sources) {
			out = append(out, p.Name+" (pushed, "+p.Architecture+")")
		}
	}
	return out, err
}
