package wire

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// confirmTime is how long a machine whose link is open may take to say that it is
// there, when another comes with its key.
const confirmTime = 10 * time.Second

// lostSessions is how many a control plane may not know of whose disk went back.
const lostSessions = 1 << 20

// A place is where the values that a node says put it on its line.
type place struct {
	// at is the index of the value that it has of the line; negative begins the line.
	at int
	// doubt: it was on the line before what is newest there. It went back, or there
	// are two.
	doubt bool
	// foreign: it shows a value that only another machine than the line's can have.
	foreign bool
	// note, if it is not empty, is for the log of events once the session is kept.
	note string
}

// find says where a node stands.
//
//	newest value, or the one before it          goes on     the usual case
//	an older one                                in doubt    rolled back to a snapshot, or a copy
//	one that the line went back behind          foreign     a copy
//	one of the line's counts that was never on it   foreign a copy
//	a higher count than any here                in doubt    the control plane's own disk went back, or a copy says so
//	anything, after a restore                   begins      the backup is older than the node
func find(l *state.Line, epoch uint64, said []link.SessionValue) place {
	if l == nil || len(l.Values) == 0 || l.Epoch != epoch {
		return place{at: -1}
	}
	for _, v := range said { // the second is the newest one here if the first was never kept here
		if v == l.Values[0] {
			return place{}
		}
	}
	if len(said) == 0 {
		return place{at: len(l.Values), doubt: true, note: "it does not know of its last session"}
	}
	const back = "it went back to an older state of itself"
	newest, oldest := l.Values[0].Count(), l.Values[len(l.Values)-1].Count()
	if slices.Contains(l.Left, said[0]) {
		return place{foreign: true}
	}
	for _, v := range said {
		if at := slices.Index(l.Values, v); at > 0 {
			return place{at: at, doubt: true, note: back}
		}
	}
	switch count := said[0].Count(); {
	case count > newest && count-newest <= lostSessions:
		return place{doubt: true, note: "it had a later session than this control plane knows of"}
	case count < oldest:
		return place{at: len(l.Values), doubt: true, note: back}
	}
	return place{foreign: true}
}

// A beginning is what a session begins with.
type beginning struct {
	place
	value link.SessionValue
}

// begin decides about the opening of a link: whether the machine may have it, and
// which value its session is given. A machine that is not the one whose link is open
// now is refused, and the node is held.
func (s *Server) begin(ctx context.Context, n *state.Node, o link.Opening) (beginning, error) {
	p, next, err := s.placed(n, o)
	if err != nil {
		return beginning{}, err
	}
	if p.doubt || p.foreign {
		there := s.Links.confirmed(ctx, n.ID, s.confirm)
		if there || p.foreign {
			if err := s.holdNode(n, state.Cloned, nil, "two machines use its key"); err != nil {
				return beginning{}, err
			}
		}
		if there {
			return beginning{}, link.NodeCloned.Errorf("another machine is connected as node %q", n.Name)
		}
	}
	return beginning{p, link.NewSessionValue(next)}, nil
}

// placed finds where the node stands, and holds one that is ahead of a restored
// control plane. next is the count of its next value.
func (s *Server) placed(n *state.Node, o link.Opening) (p place, next uint64, err error) {
	ahead := false
	err = s.office.Store.View(func(tx *state.Tx) error {
		now, mesh, err := standing(tx, n)
		if err != nil {
			return err
		}
		l, err := tx.Line(n.ID)
		if err != nil {
			return err
		}
		p = find(l, mesh.Epoch, o.Sessions)
		next = 1
		if l != nil && len(l.Values) > 0 {
			next = l.Values[0].Count() + 1
		}
		for _, v := range o.Sessions {
			if v.Count() < link.MaxCount {
				next = max(next, v.Count()+1)
			}
		}
		// The last declaration of one that is retiring has no order: its host takes it
		// whatever it has.
		ahead = now.State != state.Retiring && isAhead(&now.Wanted, mesh.Epoch, o.Have)
		return nil
	})
	if err == nil && ahead {
		err = s.holdNode(n, state.Ahead, o.Have, fmt.Sprintf(
			"it has generation %d of epoch %d, which this control plane did not make: it is older than that, restored from a backup", o.Have.Generation, o.Have.Epoch))
	}
	return p, next, err
}

// isAhead says whether a node has something in force that this control plane did not
// make, by where it stands in the order of the mesh.
func isAhead(w *state.Wanted, epoch uint64, have *link.Position) bool {
	switch {
	case have == nil:
		return false
	case have.Epoch > epoch: // whatever it is, its host takes nothing of this epoch any more
		return true
	case have.Digest == w.Digest:
		return false
	case have.Epoch < epoch: // of before the last restore
		return have.Generation > w.Known(epoch)
	}
	return have.Generation >= w.Generation // not the one of that generation
}

// holdNode keeps anything new from a node; one that is held already stays so.
func (s *Server) holdNode(n *state.Node, kind state.HoldKind, have *link.Position, sentence string) error {
	return s.office.Store.Batch(func(tx *state.Tx) error {
		now, _, err := standing(tx, n)
		if err != nil || now.Hold != nil {
			return err
		}
		s.log.Warn("node is held", "node", now.Name, "kind", string(kind), "cause", sentence)
		return admission.Hold(tx, now, kind, have, sentence, s.now())
	})
}

// kept hears that a node keeps the value of its session.
func (s *Server) kept(w http.ResponseWriter, r *http.Request, n *state.Node) {
	var q link.SessionRequest
	err := s.read(w, r, maxHello, &q, []payer{byNode(n.ID)}, func() error { return s.keep(n, q.Session) })
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.done(w)
}

// keep makes the value of an open session the newest of the node's line: the node
// says that it keeps it. Saying it again says that it is there.
func (s *Server) keep(n *state.Node, v link.SessionValue) error {
	slot := s.Links.slot(n.ID)
	if slot == nil || slot.given.value != v {
		return link.Refused.Errorf("cannot keep the session: it is not the one that is open")
	}
	defer slot.answer()
	return s.office.Store.Batch(func(tx *state.Tx) error {
		now, mesh, err := standing(tx, n)
		if err != nil {
			return err
		}
		l, err := tx.Line(n.ID)
		if err != nil {
			return err
		}
		if l == nil {
			l = &state.Line{}
		}
		if len(l.Values) > 0 && l.Values[0] == v && l.Epoch == mesh.Epoch {
			return nil
		}
		// The line may have grown since the session began, and then it went back too.
		at := slot.given.at
		if at >= 0 {
			at = min(find(l, mesh.Epoch, slot.said).at, len(l.Values))
		}
		l.Grow(mesh.Epoch, v, at)
		if slot.given.note != "" {
			if err := tx.AddEvent(&state.Event{At: s.now(), Kind: "node.back", Node: n.ID,
				Sentence: fmt.Sprintf("node %q is back: %s", now.Name, slot.given.note)}); err != nil {
				return err
			}
		}
		return tx.PutLine(n.ID, l)
	})
}
