package wire

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/provider"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// zeros is n bytes.
type zeros struct{ n int64 }

func (z *zeros) Read(b []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), z.n))
	clear(b[:n])
	z.n -= int64(n)
	return n, nil
}

// fetch begins to read content and has the first bytes of it.
func (p *plane) fetch(n *wiretest.Node, digest string) *http.Response {
	p.t.Helper()
	c, err := n.Dial(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(c.Close)
	res, err := c.Do(p.t.Context(), http.MethodGet, link.PathContent+digest, nil, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { res.Body.Close() })
	if _, err := io.ReadFull(res.Body, make([]byte, 1<<10)); err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("%d, %v", res.StatusCode, err)
	}
	return res
}

func TestADownloadUnderWayEndsWhenItsNodeIsRevoked(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t)
		n, bystander := p.node("a"), p.node("b")
		n.HTTP1, bystander.HTTP1 = http1, http1
		const size = 256 << 10 // far more than the small buffers of both ends
		d, _, err := p.content.Add(t.Context(), &zeros{size}, size)
		if err != nil {
			t.Fatal(err)
		}
		p.declare("big", `{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":"/f","source":"`+d.String()+`"}]}`, "every")
		// Neither reads on: the control plane waits for both.
		ends, stays := p.fetch(n, d.String()), p.fetch(bystander, d.String())
		began := time.Now()
		p.revoke(n)
		await(t, func() bool {
			p.Downloads.mu.Lock()
			defer p.Downloads.mu.Unlock()
			return len(p.Downloads.of[n.ID]) == 0
		})
		got, err := io.Copy(io.Discard, ends.Body)
		took := time.Since(began)
		t.Logf("ended after %v, with %d of %d bytes", took, got, size)
		if err == nil || errors.Is(err, io.EOF) || got > size/2 {
			t.Errorf("%d bytes came, %v", got, err)
		}
		if took > time.Second {
			t.Errorf("it took %v", took)
		}
		if got, err := io.Copy(io.Discard, stays.Body); err != nil || got != size-1<<10 {
			t.Errorf("the other's: %d bytes, %v", got, err)
		}
		if status, a := get(t, n, link.PathContent+d.String()); status != http.StatusForbidden {
			t.Errorf("asked again: %d %.100q", status, a)
		}
		// The provider has said that it is gone.
		await(t, func() bool { return len(p.grants(n)) == 0 })
	})
}

// grants are those of a node.
func (p *plane) grants(n *wiretest.Node) (out []*state.Grant) {
	p.t.Helper()
	if err := p.office.Store.View(func(tx *state.Tx) (err error) { out, err = tx.GrantsOf(n.ID); return err }); err != nil {
		p.t.Fatal(err)
	}
	return out
}

func TestContentIsReadWithAGrantOnly(t *testing.T) {
	p := newPlane(t)
	n := p.node("a")
	d := put(t, p.content, "mine")
	p.declare("m", `{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":"/f","source":"`+d.String()+`"}]}`, "every")
	if gs := p.grants(n); len(gs) != 1 || gs[0].Provider != provider.Content || gs[0].State != state.Granted {
		t.Fatalf("with its admission: %+v", gs)
	}
	for name, change := range map[string]func(tx *state.Tx) error{
		"none": func(tx *state.Tx) error { return tx.DeleteGrant(p.grants(n)[0]) },
		"taken away": func(tx *state.Tx) error {
			return tx.PutGrant(&state.Grant{Node: n.ID, Provider: provider.Content, State: state.Revoking, Error: "held"})
		},
	} {
		if status, _ := get(t, n, link.PathContent+d.String()); status != http.StatusOK {
			t.Fatalf("with a grant: %d", status)
		}
		if err := p.office.Store.Try(change); err != nil { // it can be done
			t.Fatal(err)
		}
		if err := p.office.Store.Update(change); err != nil {
			t.Fatal(err)
		}
		status, body := get(t, n, link.PathContent+d.String())
		var a link.Answer
		if err := json.Unmarshal([]byte(body), &a); err != nil || status != http.StatusForbidden {
			t.Errorf("%s: %d %q", name, status, body)
		}
		wantAnswer(t, a, link.Refused)
		if err := p.office.Grants.Complete(); err != nil {
			t.Fatal(err)
		}
	}
}

// L-12: to revoke one costs the others nothing.
func TestL12RevokingOneCostsTheOthersNothing(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t)
		var nodes []*wiretest.Node
		var links []*wiretest.Session
		var slots []*slot
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			n := p.node(name)
			n.HTTP1 = http1
			s := p.open(n)
			p.await(s, link.MessageDeclaration)
			nodes, links = append(nodes, n), append(links, s)
		}
		p.Links.mu.Lock()
		for _, n := range nodes {
			slots = append(slots, p.Links.slots[n.ID])
		}
		p.Links.mu.Unlock()
		type held struct {
			grants []*state.Grant
			record *state.Node
		}
		before := map[string]held{}
		for _, n := range nodes[1:] {
			before[n.ID] = held{p.grants(n), p.record(n)}
		}
		p.revoke(nodes[0])
		p.await(links[0], link.MessageRevoked)
		await(t, func() bool { return len(p.grants(nodes[0])) == 0 })
		for i, n := range nodes[1:] {
			if now := (held{p.grants(n), p.record(n)}); !reflect.DeepEqual(now, before[n.ID]) || len(now.grants) != 1 {
				t.Errorf("%s: it had %+v, and has %+v", n.Name, before[n.ID], now)
			}
			p.Links.mu.Lock()
			same := p.Links.slots[n.ID] == slots[i+1]
			p.Links.mu.Unlock()
			if !same {
				t.Errorf("%s: its link was opened anew", n.Name)
			}
		}
		// The next they hear is what is declared next, over the link they have.
		p.declare("m", file("/etc/m", "x"), "every")
		for i, s := range links[1:] {
			if m, err := s.Next(); err != nil || m.Type != link.MessageDeclaration || m.Declaration.Generation != 2 {
				t.Errorf("%s: %+v, %v", nodes[i+1].Name, m, err)
			}
		}
	})
}
