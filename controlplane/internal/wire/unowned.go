package wire

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
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
		inv, err := tx.Inventory(n.ID)
		if err != nil {
			return err
		}
		if inv != nil { // it may be asking before it said that it owns nothing any more
			a.Keys = append(a.Keys, inv.Owned...)
		}
		if now, _, err := standing(tx, n); err != nil || now.Hold != nil {
			return err // nothing of what was declared meanwhile
		}
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
