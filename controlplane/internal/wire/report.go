package wire

import (
	"net/http"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// maxReport bounds a report: some five thousand resources.
const maxReport = 1 << 20

// report keeps what one reconcile did.
func (s *Server) report(w http.ResponseWriter, r *http.Request, n *state.Node) {
	var rep link.Report
	err := s.read(w, r, maxReport, &rep, []payer{byNode(n.ID)}, func() error { return s.keepReport(n, &rep) })
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.done(w)
}

func (s *Server) keepReport(n *state.Node, rep *link.Report) error {
	if !admission.IsID(rep.ID) {
		return link.Refused.Errorf("cannot keep the report: its id is not 32 hex digits")
	}
	return s.office.Store.Batch(func(tx *state.Tx) error {
		isNew, err := tx.AddReport(n.ID, &state.Report{At: s.now(), Report: *rep})
		if err != nil || !isNew {
			return err
		}
		now, mesh, err := standing(tx, n)
		if err != nil {
			return err
		}
		s.applied(now, mesh, rep)
		if err := tx.DropLeavings(n.ID, state.Went(rep)...); err != nil {
			return err
		}
		return tx.PutNode(now)
	})
}

// applied writes on the node what the report says of this mesh's declarations;
// one that arrives late takes nothing back.
func (s *Server) applied(n *state.Node, mesh *state.Mesh, rep *link.Report) {
	a := &n.Applied
	a.Version, a.Installed = rep.Version, rep.Installed
	if rep.Source != "link" || rep.Mesh != mesh.ID || rep.Epoch > mesh.Epoch || rep.Epoch < a.Epoch {
		return
	}
	if rep.Epoch == a.Epoch && rep.Generation < a.Generation || rep.Epoch == mesh.Epoch && rep.Generation > n.Wanted.Generation {
		return
	}
	a.Epoch, a.Generation, a.At, a.Failed = rep.Epoch, rep.Generation, s.now(), 0
	for _, r := range rep.Resources {
		if !r.Outcome.Good() {
			a.Failed++
		}
	}
}

// inventory keeps what the node says it has.
func (s *Server) inventory(w http.ResponseWriter, r *http.Request, n *state.Node) {
	var inv link.Having
	err := s.read(w, r, admission.MaxInventory, &inv, []payer{byNode(n.ID)}, func() error {
		return s.office.Store.Batch(func(tx *state.Tx) error {
			now, err := current(tx, n.ID, n.Key)
			if err != nil {
				return err
			}
			if err := s.office.TakeProfile(tx, now, inv.Profile); err != nil {
				return err
			}
			return tx.TakeInventory(n.ID, &inv.Inventory)
		})
	})
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.done(w)
}
