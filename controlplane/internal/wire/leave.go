package wire

import (
	"net/http"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// leave hears that a node has left. Its link ends; what it asked last is answered.
func (s *Server) leave(w http.ResponseWriter, r *http.Request, n *state.Node) {
	var q link.LeaveRequest
	err := s.read(w, r, maxReport, &q, []payer{byNode(n.ID)}, func() error { return s.office.Leave(n.ID, q.Left) })
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.log.Info("node has left", "node", n.Name, "left_behind", len(q.Left))
	s.done(w)
	s.Links.Revoke(n.ID)
}
