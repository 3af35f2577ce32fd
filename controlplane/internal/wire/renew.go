package wire

import (
	"crypto/x509"
	"fmt"
	"net/http"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// renew makes a new certificate for the node's key. The one before stays as good:
// a node is known by its key, and dates decide nothing.
func (s *Server) renew(w http.ResponseWriter, r *http.Request, n *state.Node) {
	var a link.RenewAnswer
	err := s.read(w, r, maxHello, &struct{}{}, []payer{byNode(n.ID)}, func() error {
		return s.office.Store.Batch(func(tx *state.Tx) error {
			now, _, err := standing(tx, n)
			if err != nil {
				return err
			}
			key, err := x509.ParsePKIXPublicKey(now.PublicKey)
			if err != nil {
				return fmt.Errorf("cannot read the key of node %q: %w", now.ID, err)
			}
			if now.Certificate, err = s.office.Authority.Node(now.ID, key, s.now()); err != nil {
				return err
			}
			a = link.RenewAnswer{Answer: link.Answer{ServerTime: s.now()}, Certificate: now.Certificate, Chain: s.office.Authority.Chain()}
			return tx.PutNode(now)
		})
	})
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.answer(w, http.StatusOK, a)
}
