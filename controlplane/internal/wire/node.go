package wire

import (
	"net/http"
	"slices"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// asNode lets a node in, as itself.
func (s *Server) asNode(handle func(http.ResponseWriter, *http.Request, *state.Node)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n, err := s.who(r)
		if err != nil {
			if c := link.CodeOf(err); c == link.NodeRevoked || c == link.NodeUnknown {
				// Told; nothing else will come of this connection.
				w.Header().Set("Connection", "close")
				if c == link.NodeUnknown {
					s.orphaned(r)
				}
			}
			s.refuse(w, err)
			return
		}
		known(r)
		handle(w, r, n)
	}
}

// heard notes that the node was heard of. The ack of an enrolment does not count:
// a node that only enrolled has never connected.
func (s *Server) heard(handle func(http.ResponseWriter, *http.Request, *state.Node)) func(http.ResponseWriter, *http.Request, *state.Node) {
	return func(w http.ResponseWriter, r *http.Request, n *state.Node) {
		s.Seen.touch(n.ID)
		handle(w, r, n)
	}
}

// who returns the node that asks, as the state knows it now.
func (s *Server) who(r *http.Request) (*state.Node, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, link.Refused.Errorf("cannot tell who asks: this needs the certificate of a node")
	}
	c := r.TLS.PeerCertificates[0]
	id, err := s.office.Authority.VerifyNode(c)
	if err != nil {
		return nil, link.Refused.Errorf("cannot tell who asks: %w", err)
	}
	var n *state.Node
	err = s.office.Store.View(func(tx *state.Tx) error {
		n, err = current(tx, id, link.Pin(c))
		return err
	})
	return n, err
}

// current returns the node of that id and key if it may do anything.
func current(tx *state.Tx, id, key string) (*state.Node, error) {
	n, err := tx.NodeByKey(key)
	switch {
	case err != nil:
		return nil, err
	case n != nil && n.ID == id && n.Gone():
		return nil, admission.Gone(n)
	case n != nil && n.ID == id && !n.Member() && n.State != state.Retiring:
		return nil, link.Refused.Errorf("node %q is %s", id, n.State)
	case n != nil && n.ID == id:
		return n, nil
	}
	switch n, err = tx.Node(id); {
	case err != nil:
		return nil, err
	case n != nil && slices.Contains(n.Ended, key):
		return nil, link.NodeRevoked.Errorf("node %q enrolled anew, with another key; this one ended then", n.Name)
	}
	return nil, link.NodeUnknown.Errorf("the control plane has no record of node %q", id)
}

// standing returns a node as the state knows it now, if it may do anything, and
// the mesh.
func standing(tx *state.Tx, n *state.Node) (*state.Node, *state.Mesh, error) {
	now, err := current(tx, n.ID, n.Key)
	if err != nil {
		return nil, nil, err
	}
	mesh, err := tx.Mesh()
	return now, mesh, err
}
