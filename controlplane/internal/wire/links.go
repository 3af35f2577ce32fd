package wire

import (
	"context"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// Links is who is connected: one slot a node.
//
//	take -> open --(newer take)--> superseded --> leave
//	          |---(Revoke)-------> revoked -----> leave
//	          |---(Drain)--------> draining ----> leave
//	          `---(peer gone)-------------------> leave
//
// Only the slot that is in the map counts; one that leaves later than its
// successor came takes nothing away.
type Links struct {
	mu       sync.Mutex
	slots    map[string]*slot
	draining bool
	window   int
}

// A slot is one open link.
type slot struct {
	node string
	// since is when it was opened.
	since time.Time
	// changed has a value when there may be something to tell.
	changed chan struct{}
	// end is closed when the link is to end; why is set before, and is empty
	// for a link that a newer one superseded.
	end chan struct{}
	why link.MessageType
	// said is what the node said of its sessions, given what this one began with.
	said  []link.SessionValue
	given beginning
	// asked has a value when the node is to say that it is there; there is closed when
	// it has.
	asked chan struct{}
	mu    sync.Mutex
	there chan struct{} // of mu; nil when nobody waits
}

func newLinks() *Links { return &Links{slots: map[string]*slot{}} }

// take opens the slot of a node and ends the one it had.
func (l *Links) take(node string, now time.Time, said []link.SessionValue, given beginning) *slot {
	s := &slot{node: node, since: now, changed: make(chan struct{}, 1), end: make(chan struct{}), asked: make(chan struct{}, 1)}
	s.said, s.given = said, given
	s.changed <- struct{}{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.slots[node]; old != nil {
		old.finish("")
	}
	if l.draining {
		s.finish(link.MessageDrain)
	}
	l.slots[node] = s
	return s
}

// leave takes the slot away if it is still the node's, and says whether it was.
func (l *Links) leave(s *slot) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots[s.node] != s {
		return false
	}
	delete(l.slots, s.node)
	return true
}

// finish ends a slot, for the first reason only; Links.mu is held.
func (s *slot) finish(why link.MessageType) {
	select {
	case <-s.end:
	default:
		s.why = why
		close(s.end)
	}
}

// slot returns the open link of a node, nil when it has none.
func (l *Links) slot(node string) *slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots[node]
}

// confirmed asks the machine whose link is open whether it is there, and says
// whether it is, at the latest after within.
func (l *Links) confirmed(ctx context.Context, node string, within time.Duration) bool {
	s := l.slot(node)
	if s == nil {
		return false
	}
	s.mu.Lock()
	if s.there == nil {
		s.there = make(chan struct{})
	}
	there := s.there
	s.mu.Unlock()
	select {
	case s.asked <- struct{}{}:
	default: // it is being asked
	}
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-there:
		return true
	case <-s.end:
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// answer says that the machine of a link is there.
func (s *slot) answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.there != nil {
		close(s.there)
		s.there = nil
	}
}

// Changed tells the links of those nodes that there may be news.
func (l *Links) Changed(nodes ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range nodes {
		if s := l.slots[n]; s != nil {
			s.look()
		}
	}
}

// AllChanged tells every link that there may be news.
func (l *Links) AllChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.slots {
		s.look()
	}
}

func (s *slot) look() {
	select {
	case s.changed <- struct{}{}:
	default: // it has not looked yet, and will see both
	}
}

// Revoke ends the link of a node; the state says already that it is revoked.
func (l *Links) Revoke(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.slots[node]; s != nil {
		s.finish(link.MessageRevoked)
	}
}

// Drain ends all links, now and from now on. Nodes come back over a window
// that grows with their number.
func (l *Links) Drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	l.window = min(2+len(l.slots)/100, 60)
	for _, s := range l.slots {
		s.finish(link.MessageDrain)
	}
}

// Window is the seconds over which drained nodes come back.
func (l *Links) Window() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.window
}

// Since returns since when a node has a link, and whether it has one.
func (l *Links) Since(node string) (at time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.slots[node]; s != nil {
		return s.since, true
	}
	return time.Time{}, false
}

// Connected says whether a node has a link.
func (l *Links) Connected(node string) bool { _, ok := l.Since(node); return ok }

// Count is how many links there are.
func (l *Links) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.slots)
}
