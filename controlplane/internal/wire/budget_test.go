package wire

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/link"
)

func TestBodiesHaveABudgetAndEachSenderAShare(t *testing.T) {
	b := newBudget(10)
	one, two, all := payer{"node", "1", 6}, payer{"node", "2", 6}, payer{"address", "a", 9}
	if !b.take(6, one, all) || b.take(1, one) || b.take(4, two, all) || !b.take(3, two, all) || b.take(2) || !b.take(1) {
		t.Error("more was given out than there is")
	}
	b.give(6, one, all)
	b.give(3, two, all)
	b.give(1)
	if b.left != 10 || len(b.taken) != 0 {
		t.Errorf("given back: %d left, %v taken", b.left, b.taken)
	}
}

func TestANodeThatSendsALotIsToldToWaitAndOthersAreNot(t *testing.T) {
	p := newPlane(t)
	a, b := p.node("a"), p.node("b")
	// Bodies that are begun and do not end.
	const body = maxReport - 1
	for range nodeShare / body {
		c, err := a.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		r, w := io.Pipe()
		t.Cleanup(func() { w.Close() })
		go func() {
			if res, err := c.Send(t.Context(), http.MethodPost, link.PathReports, r, nil); err == nil {
				res.Body.Close()
			}
		}()
		if _, err := w.Write([]byte(strings.Repeat(" ", body))); err != nil {
			t.Fatal(err)
		}
	}
	await(t, func() bool {
		p.bodies.mu.Lock()
		defer p.bodies.mu.Unlock()
		return p.bodies.taken[byNode(a.ID)] >= nodeShare/body*body
	})
	c, err := a.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	res, err := c.Do(t.Context(), http.MethodPost, link.PathReports, []byte(strings.Repeat(" ", 64<<10)), nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
		t.Errorf("%d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	if status, answer, err := b.Post(t.Context(), link.PathReports, link.Report{ID: wiretest.ID()}); err != nil || status != http.StatusOK {
		t.Errorf("another node: %d %+v, %v", status, answer, err)
	}
}

func TestStrangersLeaveRoomForTheReportsOfNodes(t *testing.T) {
	p := newPlane(t)
	n := p.node("a")
	k := p.token(admission.TokenOptions{})
	// Bodies from many addresses, for a token whose id they know.
	for i := range 2 * maxBodies >> 20 {
		r := &http.Request{RemoteAddr: fmt.Sprintf("192.0.2.%d:1", i)}
		p.bodies.take(1<<20, byStranger(r)...)
	}
	p.bodies.mu.Lock()
	left := p.bodies.left
	p.bodies.mu.Unlock()
	if left != maxBodies-strangerShare || left < 4*nodeShare {
		t.Fatalf("%d bytes are left to the nodes", left)
	}
	h, req := p.host(k, "b")
	if a, err := h.Enrol(t.Context(), k, req); err != nil || a.Code != link.Busy {
		t.Errorf("one stranger more: %+v, %v", a, err)
	}
	if status, a, err := n.Post(t.Context(), link.PathReports, link.Report{ID: wiretest.ID()}); err != nil || status != http.StatusOK {
		t.Errorf("a node: %d %+v, %v", status, a, err)
	}
	p.bodies.give(strangerShare/2, strangers)
	if a, err := h.Enrol(t.Context(), k, req); err != nil || a.Code != "" {
		t.Errorf("when there is room again: %+v, %v", a, err)
	}
}

func TestAReportOfNothingButObjectsIsRefused(t *testing.T) {
	p := newPlane(t)
	c, err := p.node("a").Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"id":"` + wiretest.ID() + `","resources":[` + strings.Repeat("{},", maxReport/4) + `{}]}`
	var a link.Answer
	if _, err := c.JSON(t.Context(), http.MethodPost, link.PathReports, []byte(body), nil, &a); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, a, link.Refused)
}

func TestWhatIsAnnouncedIsNotTaken(t *testing.T) {
	p := newPlane(t)
	k := p.token(admission.TokenOptions{Uses: 9})
	for range 8 {
		n, _ := p.host(k, "x")
		c, err := n.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		h, err := c.Prove(k, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, w := io.Pipe()
		t.Cleanup(func() { w.Close() })
		go func() {
			if res, err := c.Send(t.Context(), http.MethodPost, link.PathEnrol, r, h); err == nil {
				res.Body.Close()
			}
		}()
		if _, err := w.Write([]byte("{")); err != nil {
			t.Fatal(err)
		}
	}
	n, req := p.host(k, "y")
	if a, err := n.Enrol(t.Context(), k, req); err != nil || a.Code != "" {
		t.Errorf("%+v, %v", a, err)
	}
}

// await waits for what another goroutine does.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	for !ok() {
		if t.Context().Err() != nil {
			t.Fatal("it does not come")
		}
		runtime.Gosched()
	}
}
