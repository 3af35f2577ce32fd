package wire

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/name"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// orphanInterval is how often an orphan is written down that comes again and again.
const orphanInterval = 10 * time.Minute

// orphans is when each orphan was written down last.
type orphans struct {
	mu sync.Mutex
	at map[string]time.Time
}

// due says whether an orphan is to be written down now.
func (o *orphans) due(id string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at, ok := o.at[id]; ok && now.Sub(at).Abs() < orphanInterval {
		return false
	}
	const most = 10_000
	if o.at == nil || len(o.at) > most {
		o.at = map[string]time.Time{}
	}
	o.at[id] = now
	return true
}

// orphaned writes down who asked with a certificate of this mesh that no record
// knows, which who has looked at.
func (s *Server) orphaned(r *http.Request) {
	c := r.TLS.PeerCertificates[0]
	_, id, err := link.NodeOf(c)
	if err != nil {
		return
	}
	now := s.now()
	s.Seen.touch(id)
	if !s.orphans.due(id, now) {
		return
	}
	o := &state.Orphan{ID: id, Key: link.Pin(c), PublicKey: c.RawSubjectPublicKeyInfo, From: r.RemoteAddr, First: now, Last: now}
	if claim := r.Header.Get(link.HeaderName); name.Valid(claim) {
		o.Name = claim
	}
	err = s.office.Store.Batch(func(tx *state.Tx) error {
		if n, err := tx.NodeByKey(o.Key); err != nil || n != nil {
			return err // the key is another node's, which knows itself by another id
		}
		old, err := tx.Orphan(id)
		if err != nil {
			return err
		}
		if old != nil {
			o.First = old.First
			if o.Name == "" {
				o.Name = old.Name
			}
			return tx.PutOrphan(o)
		}
		if err := tx.PutOrphan(o); err != nil {
			return err
		}
		return tx.AddEvent(&state.Event{At: now, Kind: "node.orphaned", Node: id, Sentence: fmt.Sprintf(
			"a node that is not in the state came from %s with a certificate of this mesh: %q, which calls itself %q", o.From, id, o.Name)})
	})
	if err != nil {
		s.log.Error("cannot write an orphan down", "node", id, "error", err)
		return
	}
	s.log.Warn("a node is not in the state", "node", id, "name", o.Name, "from", o.From)
}
