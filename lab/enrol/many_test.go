package enrol

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/lab/fleet"
)

// machines makes simulated machines that will enrol with a token.
func machines(t *testing.T, token link.Token, count int) (ns []*fleet.Node) {
	t.Helper()
	for i := range count {
		n, err := fleet.New(token, 2+i)
		must(t, err)
		ns = append(ns, n)
	}
	return ns
}

// TestE15AnswersThatAreLost: one answer in ten is lost on its way, after what it
// answers was done. A thousand machines become a thousand nodes, and each token
// has as many as it has uses.
func TestE15AnswersThatAreLost(t *testing.T) {
	const listen, count, tokens = hereIP + ":7443", 1000, 4
	w := build(t, listen)
	var answers, lost atomic.Int64
	dice := rand.New(rand.NewPCG(15, 15)) // of the wall's own lock
	w.each = func() bool {
		answers.Add(1)
		if dice.IntN(10) > 0 {
			return true
		}
		lost.Add(1)
		return false
	}
	s := raise(t, listen, w.Addr().String())
	var all []*fleet.Node
	for i := range tokens {
		for _, n := range machines(t, s.token(count/tokens), count/tokens) {
			n.Hostname = "lossy"
			// One answer is one or two records of HTTP/1.1, and of HTTP/2 besides what
			// that says by itself.
			n.HTTP1 = i > 0
			all = append(all, n)
		}
	}
	_, err := fleet.Each(all, 40, func(n *fleet.Node) error {
		_, err := n.Join(t.Context())
		return err
	})
	must(t, err)
	if lost.Load() < count/10 {
		t.Fatalf("only %d of %d answers were lost", lost.Load(), answers.Load())
	}
	t.Logf("%d of %d answers were lost", lost.Load(), answers.Load())
	ids := map[string]bool{}
	for _, n := range all {
		ids[n.ID] = true
	}
	for _, n := range s.nodes() {
		if !ids[n.ID] || n.State != "enrolled" {
			t.Errorf("node %q (%s) is no machine's, or not enrolled", n.ID, n.State)
		}
	}
	if got := len(s.nodes()); got != count || len(ids) != count {
		t.Errorf("%d machines became %d nodes", count, got)
	}
	for _, k := range s.tokens() {
		used := 0
		for _, h := range k.Holders {
			if h.Used {
				used++
			}
		}
		if used != count/tokens || len(k.Holders) != used || k.Left != 0 {
			t.Errorf("token %s with %d uses has %d holders, %d of them used it, %d are left", k.ID, count/tokens, len(k.Holders), used, k.Left)
		}
	}
}

// TestE24TwoHundredWithOneToken: one gets in, the others are told why not.
func TestE24TwoHundredWithOneToken(t *testing.T) {
	s := raise(t, "", "")
	const count = 200
	ns := machines(t, s.token(1), count)
	var in, used atomic.Int64
	_, err := fleet.Each(ns, count, func(n *fleet.Node) error {
		_, err := n.Join(t.Context())
		switch link.CodeOf(err) {
		case link.TokenUsed:
			used.Add(1)
			return nil
		case "":
			if err == nil {
				in.Add(1)
			}
		}
		return err
	})
	must(t, err)
	if in.Load() != 1 || used.Load() != count-1 {
		t.Errorf("%d got in and %d were told that the token is used", in.Load(), used.Load())
	}
	if ns := s.nodes(); len(ns) != 1 || ns[0].State != "enrolled" {
		t.Errorf("the nodes are %+v", ns)
	}
}

// TestE20EnrolTwice, with another token of the same mesh: exit 0, and that token
// is not used. So it is with the one that the machine came with.
func TestE20EnrolTwice(t *testing.T) {
	s := raise(t, "", "")
	h := s.host()
	must(t, h.Start(t.Context()))
	first, second := s.token(1), s.token(1)
	enrol(t, h, first)
	was, err := identityOf(h)
	must(t, err)
	for _, token := range []link.Token{second, first, second} {
		if out := enrol(t, h, token); !contains(out, "already enrolled as "+was.Name) {
			t.Errorf("it says %q", out)
		}
	}
	if is, err := identityOf(h); err != nil || is.Node != was.Node || string(is.Key) != string(was.Key) {
		t.Errorf("the identity is another one (%v)", err)
	}
	if left := s.tokens()[second.ID]; left.Left != 1 || len(left.Holders) != 0 {
		t.Errorf("the second token is %+v", left)
	}
	if n := len(s.nodes()); n != 1 {
		t.Errorf("one machine became %d nodes", n)
	}
}

// TestE14AnImageOfAnInstalledHost, copied twice, becomes two nodes.
func TestE14AnImageOfAnInstalledHost(t *testing.T) {
	s := raise(t, "", "")
	golden := s.host()
	must(t, golden.Start(t.Context()))
	_, err := golden.Ask(t.Context(), "", "status")
	must(t, err)
	must(t, golden.Stop(15))
	token := s.token(2)
	keys := map[string]bool{}
	for range 2 {
		h := s.host()
		copyTree(t, golden.Root, h.Root)
		must(t, h.Start(t.Context()))
		enrol(t, h, token)
		id, err := identityOf(h)
		must(t, err)
		keys[string(id.Key)] = true
	}
	names := map[string]bool{}
	for _, n := range s.nodes() {
		names[n.Name] = true
	}
	if len(keys) != 2 || len(names) != 2 {
		t.Errorf("two copies of one image have %d keys and are nodes %v", len(keys), names)
	}
}

// soon is how long is waited for what comes by itself.
const soon = 30 * time.Second
