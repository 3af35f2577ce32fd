package fleet

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// A Crowd is many nodes that hold their links.
type Crowd struct {
	Nodes []*Node

	// Reports is over what time the nodes report that they have what they were told,
	// each at a moment of its own; one that never does is written down as behind. It
	// is set before Stay.
	Reports time.Duration

	ctx    context.Context
	leave  context.CancelFunc
	stayed sync.WaitGroup

	mu   sync.Mutex
	news chan struct{}
	// up is since when a node has a link, downs how often it lost one.
	up    map[*Node]time.Time
	downs map[*Node]int
	// marker is what is looked for in declarations, heard when who had it first.
	marker []byte
	heard  map[*Node]time.Time
	last   map[*Node]link.DeclarationMessage
	// owing is how many have yet to report.
	owing int
}

// NewCrowd makes an empty one.
func NewCrowd(ctx context.Context) *Crowd {
	c := &Crowd{up: map[*Node]time.Time{}, downs: map[*Node]int{}, last: map[*Node]link.DeclarationMessage{}, news: make(chan struct{}, 1)}
	c.ctx, c.leave = context.WithCancel(ctx)
	return c
}

// Stay lets nodes hold their links until Close.
func (c *Crowd) Stay(nodes ...*Node) {
	c.Nodes = append(c.Nodes, nodes...)
	for _, n := range nodes {
		n.Changed, n.Heard = c.changed, c.message
		c.stayed.Go(func() { _ = n.Stay(c.ctx) })
	}
}

// Close ends all links.
func (c *Crowd) Close() {
	c.leave()
	c.stayed.Wait()
}

func (c *Crowd) changed(n *Node, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.up[n] = time.Now()
	} else {
		delete(c.up, n)
		c.downs[n]++
	}
	c.tell()
}

func (c *Crowd) message(n *Node, m link.Message) {
	if m.Type != link.MessageDeclaration {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[n] = *m.Declaration
	if c.Reports > 0 {
		c.owing++
		c.stayed.Go(func() { c.report(n, *m.Declaration) })
	}
	if c.marker != nil && bytes.Contains(m.Declaration.Document, c.marker) {
		if _, again := c.heard[n]; !again {
			c.heard[n] = now
		}
	}
	c.tell()
}

// report reports once, and again after a while when the link was down.
func (c *Crowd) report(n *Node, m link.DeclarationMessage) {
	for sleep(c.ctx, jitter(c.Reports)) == nil {
		if n.Report(c.ctx, m) == nil {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owing--
	c.tell()
}

// Owing is how many reports are still to come.
func (c *Crowd) Owing() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owing
}

func (c *Crowd) tell() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// Up is how many links there are.
func (c *Crowd) Up() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.up)
}

// Downs is how often all nodes together lost a link, those left out not counted.
func (c *Crowd) Downs(but ...*Node) (sum int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, k := range c.downs {
		if !slices.Contains(but, n) {
			sum += k
		}
	}
	return sum
}

// Expect begins to look for a text in the declarations that come.
func (c *Crowd) Expect(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marker, c.heard = []byte(text), map[*Node]time.Time{}
}

// Told is how many nodes had what is expected.
func (c *Crowd) Told() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.heard)
}

// Heard returns when each node had what is expected.
func (c *Crowd) Heard() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []time.Time
	for _, at := range c.heard {
		out = append(out, at)
	}
	return out
}

// Last is the declaration a node was told last.
func (c *Crowd) Last(n *Node) link.DeclarationMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[n]
}

// Await returns when ok says so; it is asked at each change.
func (c *Crowd) Await(limit time.Duration, what string, ok func() bool) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	for !ok() {
		select {
		case <-c.news:
		case <-late.C:
			return fmt.Errorf("after %s not yet: %s; %d links are up", limit, what, c.Up())
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	return nil
}

// Each does something for each of nodes, so many at a time, and returns how long
// each took and the first error.
func Each(nodes []*Node, most int, do func(*Node) error) (took []time.Duration, err error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	turn := make(chan struct{}, most)
	for _, n := range nodes {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			began := time.Now()
			derr := do(n)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
			if err == nil && derr != nil {
				err = derr
			}
		})
	}
	wg.Wait()
	return took, err
}
