package wire

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

// unowned tells a node what it owned once: one that lost its store can take it back.
func (s *Server) unowned(w http.ResponseWriter, _ *http.Request, n *state.Node) {
	a := link.UnownedAnswer{Answer: link.Answer{ServerTime: s.now()}, Keys: []string{}, Declarations: []json.RawMessage{}}
	err := s.office.Store.View(func(tx *state.Tx) error {
		keys, err := tx.Unowned(n.ID)
		if err != nil {
			return err
		}
		a.Keys = append(a.Keys, keys...)
		leavings := tx.Leavings(n.ID)
		for _, key := range slices.Sorted(maps.Keys(leavings)) {
			a.Declarations = append(a.Declarations, leavings[key])
		}
		return nil
	})
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.answer(w, http.StatusOK, a)
}

// disowned works out what a node owned once, when it says what it owns now: what it
// does not say any more, unless one of its reports says that it went.
func disowned(tx *state.Tx, n *state.Node, now *profile.Inventory) error {
	before, err := tx.Inventory(n.ID)
	if err != nil {
		return err
	}
	unowned, err := tx.Unowned(n.ID)
	if err != nil {
		return err
	}
	gone := map[string]bool{}
	for _, key := range now.Owned {
		gone[key] = true // not unowned: it owns it
	}
	var lost []string
	if before != nil {
		lost = before.Owned
	}
	candidates := slices.Concat(unowned, lost)
	if !slices.ContainsFunc(candidates, func(k string) bool { return !gone[k] }) {
		return tx.PutUnowned(n.ID, nil)
	}
	reports, err := tx.Reports(n.ID, maxReportsRead)
	if err != nil {
		return err
	}
	for _, r := range reports {
		for _, key := range wentWith(&r.Report) {
			gone[key] = true
		}
	}
	out := []string{}
	for _, key := range candidates {
		if !gone[key] {
			gone[key] = true
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return tx.PutUnowned(n.ID, out)
}

// maxReportsRead is all that are kept of a node.
const maxReportsRead = 20

// wentWith are the keys of what a report says is not owned any more, and how.
func wentWith(r *link.Report) []string {
	var out []string
	for _, x := range r.Resources {
		if x.Outcome == declaration.Removed || x.Outcome == declaration.Released {
			out = append(out, x.Key)
		}
	}
	return out
}
