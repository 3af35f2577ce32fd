package wire

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// link is one session: it lasts until the peer is gone, a newer one comes, the
// node is revoked or the control plane stops.
func (s *Server) link(w http.ResponseWriter, r *http.Request, n *state.Node) {
	o, err := link.ParseOpening(r.Header)
	if err != nil {
		s.refuse(w, err)
		return
	}
	given, err := s.begin(r.Context(), n, o)
	if err != nil {
		s.refuse(w, err)
		return
	}
	// All that a link keeps of its node, for as long as it lasts: the rest is read when
	// it is needed.
	n = &state.Node{ID: n.ID, Key: n.Key, Name: n.Name}
	slot := s.Links.take(n.ID, s.now(), o.Sessions, given)
	s.log.Info("link is up", "node", n.Name, "from", r.RemoteAddr)
	why := s.session(w, r, slot, n)
	if s.Links.leave(slot) {
		s.Seen.touch(n.ID)
		s.log.Info("link is down", "node", n.Name, "reason", why)
		return
	}
	s.log.Info("older link has ended", "node", n.Name, "reason", why)
}

// session writes until the link ends, and says why it did.
func (s *Server) session(w http.ResponseWriter, r *http.Request, slot *slot, n *state.Node) string {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	out := link.NewWriter(w)
	flush := http.NewResponseController(w).Flush
	send := func(m link.Message) error {
		m.ServerTime = s.now()
		s.patience(w)
		defer calm(w) // the next one may be long in coming
		if err := out.Write(m); err != nil {
			return err
		}
		return flush()
	}
	// At once, so that the peer knows the link stands.
	if err := send(link.Message{Type: link.MessageHeartbeat, Session: slot.given.value}); err != nil {
		return err.Error()
	}
	beat := time.NewTicker(s.heartbeat)
	defer beat.Stop()
	late := time.NewTimer(s.apply)
	late.Stop()
	defer late.Stop()
	var sent news
	for {
		// What ends the link comes before what is still to be said.
		select {
		case <-slot.end:
			return s.farewell(slot, send)
		default:
		}
		select {
		case <-slot.end:
		case <-r.Context().Done():
			return "the peer is gone"
		case <-slot.changed:
			now, err := s.news(n)
			if err != nil {
				if link.CodeOf(err) == link.NodeRevoked {
					_ = send(link.Message{Type: link.MessageRevoked, Sentence: err.Error()})
				}
				return err.Error()
			}
			if now.declaration.Generation > 0 && now.order() != sent.order() {
				if err := send(link.Message{Type: link.MessageDeclaration, Declaration: &now.declaration}); err != nil {
					return err.Error()
				}
				late.Reset(s.apply)
			}
			if len(now.addresses) > 0 && !slices.Equal(now.addresses, sent.addresses) {
				if err := send(link.Message{Type: link.MessageAddresses, Addresses: now.addresses}); err != nil {
					return err.Error()
				}
			}
			sent = now
			sent.declaration.Document = nil
		case <-late.C:
			s.notApplied(n)
		case <-slot.asked:
			if err := send(link.Message{Type: link.MessageConfirm}); err != nil {
				return err.Error()
			}
		case <-beat.C:
			if err := send(link.Message{Type: link.MessageHeartbeat}); err != nil {
				return err.Error()
			}
			s.Seen.touch(n.ID)
		}
	}
}

func (s *Server) farewell(slot *slot, send func(link.Message) error) string {
	switch slot.why {
	case link.MessageRevoked:
		_ = send(link.Message{Type: link.MessageRevoked, Sentence: link.NodeRevoked.Sentence()})
		return "the node is revoked"
	case link.MessageDrain:
		_ = send(link.Message{Type: link.MessageDrain, WindowSeconds: s.Links.Window()})
		return "the control plane stops"
	}
	return "a newer one took its place"
}

// news is what a node is told when it is not what it was told last.
type news struct {
	declaration link.DeclarationMessage
	// addresses are those the operator gave; found ones are not announced.
	addresses []string
}

// order is what a declaration is told from another by.
func (n *news) order() string {
	return fmt.Sprintf("%d %d %s", n.declaration.Epoch, n.declaration.Generation, n.declaration.Digest)
}

// news reads what a node is to be told now.
func (s *Server) news(n *state.Node) (out news, err error) {
	err = s.office.Store.View(func(tx *state.Tx) error {
		now, mesh, err := standing(tx, n)
		if err != nil {
			return err
		}
		out.addresses = tx.Addresses()
		if now.Hold != nil {
			return nil
		}
		w := now.Wanted
		out.declaration = link.DeclarationMessage{
			Mesh: mesh.ID, Epoch: mesh.Epoch, Generation: w.Generation, Digest: w.Digest, Size: w.Size,
			Final: now.State == state.Retiring, Leave: now.Leave,
		}
		if w.Size <= link.MaxInline {
			out.declaration.Document = tx.Declaration(n.ID)
		}
		return nil
	})
	return out, err
}
