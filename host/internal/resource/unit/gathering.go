package unit

import (
	"context"
	"sync"
	"time"
)

// A gathering lets units that are applied at the same time share a daemon-reload:
// it comes when all have written their files, and before any of them goes on.
type gathering struct {
	reload func(context.Context) error

	mu sync.Mutex
	// expected are those that have neither come nor left.
	expected int
	waiting  []waiter
	hurry    *time.Timer
}

type waiter struct {
	ctx  context.Context
	need bool
	done chan error
}

// patience is how long the others wait for one that does not come.
const patience = 2 * time.Second

func gather(members int, reload func(context.Context) error) *gathering {
	return &gathering{reload: reload, expected: members}
}

// A member is one call's part in a gathering. It ends once, by refresh or leave.
type member struct {
	*gathering
	over bool
}

// join takes part in the gathering, if there is one.
func (k *Kind) join() *member {
	g := k.gathering
	if g == nil {
		g = gather(1, k.systemd.reload)
	}
	return &member{gathering: g}
}

// refresh returns when systemd has read all files anew, if one of those that
// are at it needs that.
func (m *member) refresh(ctx context.Context, need bool) error {
	m.over = true
	w := waiter{ctx, need, make(chan error, 1)}
	m.mu.Lock()
	m.expected--
	m.waiting = append(m.waiting, w)
	all := m.taken(false)
	if all == nil && m.hurry == nil {
		m.hurry = time.AfterFunc(patience, func() {
			m.mu.Lock()
			all := m.taken(true)
			m.mu.Unlock()
			m.serve(all)
		})
	}
	m.mu.Unlock()
	m.serve(all)
	return <-w.done
}

// leave is for a call that ends before it came to refresh.
func (m *member) leave() {
	if m.over {
		return
	}
	m.over = true
	m.mu.Lock()
	m.expected--
	all := m.taken(false)
	m.mu.Unlock()
	m.serve(all)
}

// taken takes those that wait, when nobody is waited for any more, or now.
func (g *gathering) taken(now bool) []waiter {
	if len(g.waiting) == 0 || !now && g.expected > 0 {
		return nil
	}
	if g.hurry != nil {
		g.hurry.Stop()
		g.hurry = nil
	}
	all := g.waiting
	g.waiting = nil
	return all
}

// serve reloads once for all, in the name of the first that needs it.
func (g *gathering) serve(all []waiter) {
	var err error
	for _, w := range all {
		if w.need {
			err = g.reload(w.ctx)
			break
		}
	}
	for _, w := range all {
		w.done <- err
	}
}
