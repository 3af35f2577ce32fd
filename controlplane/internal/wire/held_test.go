package wire

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

// apart waits until the node has no link any more.
func (p *plane) apart(n *wiretest.Node) {
	p.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); p.Links.Connected(n.ID); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatal("the link does not end")
		}
	}
}

func (p *plane) once(m *wiretest.Node) {
	p.t.Helper()
	p.session(m).Close()
	p.apart(m)
}

func (p *plane) approve(ref string) {
	p.t.Helper()
	if _, err := p.office.Approve(ref, "", nil, ""); err != nil {
		p.t.Fatal(err)
	}
}

func TestE16ACopyThatSaysAHighCountIsAskedForLikeAnyOther(t *testing.T) {
	for _, said := range []link.SessionValue{"9-0000000000000001", "999999999999-0000000000000001", "9999999999999999-0000000000000001"} {
		p := newPlane(t)
		m := p.node("a")
		p.once(m)
		copied := snapshot(m)
		p.answering(m, p.session(m))
		copied.Opening.Sessions = []link.SessionValue{said}
		if _, err := copied.Open(t.Context()); link.CodeOf(err) != link.NodeCloned || p.hold(m) != state.Cloned {
			t.Errorf("%s: %v, held as %q", said, err, p.hold(m))
		}
	}
	// Nor does it take the room of the counts that follow.
	p := newPlane(t)
	m := p.node("a")
	m.Opening.Sessions = []link.SessionValue{"9999999999999999-0000000000000001"}
	p.once(m)
	if got := m.Opening.Sessions[0].Count(); got != 1 {
		t.Errorf("the first session has the count %d", got)
	}
}

func TestE16CopiesThatTakeTurnsAreTwoMachines(t *testing.T) {
	p := newPlane(t)
	a := p.node("a")
	p.once(a)
	p.once(a)
	b := snapshot(a)
	p.once(b) // goes on from where both were
	p.once(a) // behind that: it went back, or is another
	p.once(b) // shows what the line went back behind: another
	if p.hold(a) != state.Cloned {
		t.Errorf("held as %q", p.hold(a))
	}
}

func TestE16AnApprovalOfANodeThatIsAwayIsForWhoComesNext(t *testing.T) {
	p := newPlane(t)
	m := p.node("a")
	p.once(m)
	copied := snapshot(m)
	for range 3 {
		p.once(m)
	}
	s := p.session(copied)
	p.answering(copied, s)
	if _, err := m.Open(t.Context()); link.CodeOf(err) != link.NodeCloned {
		t.Fatal(err)
	}
	s.Close()
	p.apart(m)
	p.approve("a") // the copy is a node of its own now
	p.session(m)
	if p.hold(m) != "" {
		t.Errorf("alone, and held as %q", p.hold(m))
	}
}

func TestAHeldNodeReadsNothingNew(t *testing.T) {
	p := newPlane(t)
	m := p.node("a")
	p.session(m)
	err := p.office.Store.Update(func(tx *state.Tx) error {
		n, err := tx.Node(m.ID)
		if err != nil {
			return err
		}
		return admission.Hold(tx, n, state.Cloned, nil, "two", start)
	})
	if err != nil {
		t.Fatal(err)
	}
	blob := put(t, p.content, "a new secret")
	p.declare("b", fmt.Sprintf(`{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":"/etc/q","source":%q}]}`, blob), "node=a")
	p.declare("c", file("/etc/c", "another secret"), "node=a")
	for _, d := range []string{blob.String(), p.record(m).Wanted.Digest} {
		if status, _ := get(t, m, link.PathContent+d); status != http.StatusForbidden {
			t.Errorf("%s: %d", d, status)
		}
	}
	p.undeclare("c")
	if status, b := get(t, m, link.PathUnowned); status != http.StatusOK || strings.Contains(b, "secret") || strings.Contains(b, "/etc/c") {
		t.Errorf("%d, %s", status, b)
	}
	if err := p.office.Store.Update(func(tx *state.Tx) error { _, _, err := p.office.Retire(tx, "a", false); return err }); err == nil {
		t.Error("it may be retired, whichever of the two that is")
	}
}

func TestWhatANodeOwnedOnceHasABound(t *testing.T) {
	p := newPlane(t)
	m := p.node("a")
	const most = 2 * 20_000
	for i := range 3 {
		var owned []string
		for j := range most / 2 {
			owned = append(owned, fmt.Sprintf("file:/%d/%d", i, j))
		}
		p.tells(m, link.PathInventory, profile.Inventory{Owned: owned})
	}
	p.tells(m, link.PathInventory, profile.Inventory{})
	err := p.office.Store.View(func(tx *state.Tx) error {
		keys, err := tx.Unowned(m.ID)
		if len(keys) != most {
			t.Errorf("%d keys are kept", len(keys))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A control plane that was restored twice from one backup has an epoch that it had
// before: what its nodes say tells.
func TestANodeThatIsAheadInTheSameEpochIsHeldAndOvertaken(t *testing.T) {
	const other = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	for name, have := range map[string]link.Position{
		"another of this generation": {Epoch: 1, Generation: 2, Digest: other},
		"a later generation":         {Epoch: 1, Generation: 50, Digest: other},
		"a later epoch":              {Epoch: 3, Generation: 1, Digest: other},
	} {
		p := newPlane(t)
		m := p.node("a")
		p.declare("m", file("/etc/m", "x"), "every")
		m.Opening.Have = &have
		s := p.session(m)
		if p.hold(m) != state.Ahead {
			t.Errorf("%s: held as %q", name, p.hold(m))
			continue
		}
		p.approve("a")
		p.Links.Changed(m.ID)
		d := p.await(s, link.MessageDeclaration).Declaration
		if d.Epoch < have.Epoch || d.Epoch == have.Epoch && d.Generation <= have.Generation {
			t.Errorf("%s: approved, it is sent epoch %d generation %d, which it would not take", name, d.Epoch, d.Generation)
		}
		// It says the same once more, before it has applied that.
		s.Close()
		p.apart(m)
		s = p.session(m)
		if p.hold(m) != "" {
			t.Errorf("%s: held again as %q", name, p.hold(m))
		}
		p.await(s, link.MessageDeclaration)
	}
	p := newPlane(t)
	m := p.node("a")
	m.Opening.Have = &link.Position{Epoch: 1 << 40, Generation: 1, Digest: other}
	p.session(m)
	if _, err := p.office.Approve("a", "", nil, ""); err == nil {
		t.Error("a node's word takes the epoch as far as it likes")
	}
}

func TestAnOrphansNewKeyIsNotGivenBackToTheOldOne(t *testing.T) {
	p := newPlane(t)
	old := p.node("web")
	p.once(old)
	backup := p.record(old)
	k := p.token(admission.TokenOptions{Rejoin: "web"})
	n, req := p.host(k, "web")
	if a, err := n.Enrol(t.Context(), k, req); err != nil || a.Code != "" {
		t.Fatal(a, err)
	}
	if a, err := n.Ack(t.Context()); err != nil || a.Code != "" {
		t.Fatal(a, err)
	}
	p.restored()
	if err := p.office.Store.Update(func(tx *state.Tx) error { return tx.PutNode(backup) }); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Open(t.Context()); link.CodeOf(err) != link.NodeUnknown {
		t.Fatal(err)
	}
	p.approve("web") // takes the new key, and holds
	if _, err := old.Open(t.Context()); link.CodeOf(err) != link.NodeRevoked {
		t.Errorf("the old key: %v", err)
	}
	p.approve("web") // releases
	if got := p.record(n); got.Key == backup.Key || got.Hold != nil {
		t.Errorf("%+v", got)
	}
	if _, err := n.Open(t.Context()); err != nil {
		t.Errorf("the right machine: %v", err)
	}
}
