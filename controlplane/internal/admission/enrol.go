package admission

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/ca"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/name"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// The bounds of what a machine may say about itself, in bytes of JSON.
const (
	maxProfile   = 64 << 10
	MaxInventory = 4 << 20
)

// Enrol answers a request whose proof, made with the token of that id, was
// good. A host that waits for a person gets an answer with the code pending, one
// that was decided against the code refused; every other refusal is an error with a
// code (link.CodeOf), and an error without one is the state's.
func (o *Office) Enrol(token string, req link.EnrolRequest) (link.EnrolAnswer, error) {
	key, b, err := checkRequest(req)
	if err != nil {
		return link.EnrolAnswer{}, err
	}
	var answer link.EnrolAnswer
	err = o.Store.Batch(func(tx *state.Tx) error {
		n, err := o.enrol(tx, token, req, key, b)
		if err != nil {
			return err
		}
		answer, err = o.answer(tx, n)
		return err
	})
	return answer, err
}

// CheckProtocol refuses a host with which there is no protocol in common.
func CheckProtocol(host link.Range) error {
	code := link.ProtocolTooOld
	switch {
	case host.Min > link.ProtocolMax:
		code = link.ProtocolTooNew
	case host.Max >= link.ProtocolMin:
		return nil
	}
	return code.Errorf("the host speaks protocol %s, the control plane %s",
		protocols(host), protocols(link.Range{Min: link.ProtocolMin, Max: link.ProtocolMax}))
}

func protocols(r link.Range) string {
	if r.Min == r.Max {
		return fmt.Sprint(r.Min)
	}
	return fmt.Sprintf("%d to %d", r.Min, r.Max)
}

func checkRequest(req link.EnrolRequest) (key ca.Key, b *module.Brought, err error) {
	refuse := func(format string, args ...any) (ca.Key, *module.Brought, error) {
		return ca.Key{}, nil, link.Refused.Errorf("cannot enrol: "+format, args...)
	}
	if err := CheckProtocol(link.Range{Min: req.Protocol, Max: req.Protocol}); err != nil {
		return ca.Key{}, nil, err
	}
	if !IsID(req.EnrolmentID) {
		return refuse("the enrolment id is not 32 hex digits")
	}
	if p, err := json.Marshal(req.Profile); err != nil || len(p) > maxProfile {
		return refuse("the profile is larger than %d bytes", maxProfile)
	}
	if i, err := json.Marshal(req.Inventory); err != nil || len(i) > MaxInventory {
		return refuse("the inventory is larger than %d bytes", MaxInventory)
	}
	if doc := localDeclaration(req); doc != nil {
		if b, err = module.Bring(doc); err != nil {
			return refuse("the local %w", err)
		}
	}
	key, err = ca.RequestKey(req.CSR)
	if err != nil {
		return refuse("%w", err)
	}
	return key, b, nil
}

// localDeclaration returns the declaration the machine had, nil for none.
func localDeclaration(req link.EnrolRequest) []byte {
	if len(req.Declaration) == 0 || string(req.Declaration) == "null" {
		return nil
	}
	return req.Declaration
}

// enrol finds or makes the node of one enrolment.
func (o *Office) enrol(tx *state.Tx, token string, req link.EnrolRequest, key ca.Key, b *module.Brought) (*state.Node, error) {
	t, err := known(tx, token)
	if err != nil {
		return nil, err
	}
	e, err := tx.Enrolment(req.EnrolmentID)
	if err != nil {
		return nil, err
	}
	if e != nil {
		return o.again(tx, t, e, key, req, b)
	}
	switch n, err := tx.NodeByKey(key.ID); {
	case err != nil:
		return nil, err
	case n != nil && n.Gone():
		return nil, Gone(n)
	case n != nil:
		return nil, link.EnrolmentConflict.Errorf("this key is that of node %q already, by another enrolment", n.ID)
	}
	now := o.Clock.Now().UTC()
	if err := judge(t, now); err != nil {
		return nil, err
	}
	if err := inScope(t, req.Profile.Hostname); err != nil {
		return nil, err
	}
	t.Taken++
	n := &state.Node{
		ID: newID(), Key: key.ID, PublicKey: key.SPKI, Enrolment: req.EnrolmentID, Tags: t.Tags,
		State: state.Pending, Profile: req.Profile,
	}
	// A rule may be stricter than the token: then it is a machine like any other.
	if verdict, _ := o.Policy.judge(t, &req.Profile); t.Rejoin != "" && verdict == Admit {
		if n, err = rejoined(tx, t.Rejoin, n); err != nil {
			return nil, err
		}
	}
	e = &state.Enrolment{ID: req.EnrolmentID, Token: t.ID, Node: n.ID, Hostname: req.Profile.Hostname, At: now}
	for _, err := range []error{
		tx.PutToken(t), tx.PutEnrolment(e), tx.PutNode(n), tx.TakeInventory(n.ID, &req.Inventory),
		tx.PutLocalDeclaration(n.ID, localDeclaration(req)),
	} {
		if err != nil {
			return nil, err
		}
	}
	// Only now, with everything about the machine written down, is it decided.
	return n, o.decide(tx, n, t, b)
}

// again answers an enrolment that is there already.
func (o *Office) again(tx *state.Tx, t *state.Token, e *state.Enrolment, key ca.Key, req link.EnrolRequest, b *module.Brought) (*state.Node, error) {
	n, err := tx.Node(e.Node)
	switch {
	case err != nil:
		return nil, err
	case n == nil:
		return nil, fmt.Errorf("internal error: enrolment %q has no node", e.ID)
	case n.Key != key.ID:
		return nil, link.EnrolmentConflict.Errorf("enrolment %q was begun with another key", e.ID)
	case n.Gone():
		return nil, Gone(n)
	case o.mayComeBack(t, e, n, req):
		return o.comesBack(tx, t, e, n, req, b)
	case t.Rejoin != "" && n.ID != t.Rejoin && n.Name != "":
		return nil, link.EnrolmentConflict.Errorf("this machine is node %q already, and cannot become another", n.Name)
	case n.State == state.Refused || n.Approval != nil:
		return o.refusedAgain(tx, t, e, n, req, b)
	case e.Token == t.ID && n.State == state.Pending && !t.Revoked.IsZero():
		return nil, judge(t, o.Clock.Now())
	case e.Token == t.ID || !e.Acked.IsZero():
		return n, nil
	}
	// It comes with another token: it takes a place of that one and gives its
	// place of the first back.
	if err := judge(t, o.Clock.Now()); err != nil {
		return nil, err
	}
	if err := inScope(t, n.Profile.Hostname); err != nil {
		return nil, err
	}
	if err := giveBack(tx, n); err != nil {
		return nil, err
	}
	t.Taken++
	e.Token, e.Freed = t.ID, false
	if err := tx.PutToken(t); err != nil {
		return nil, err
	}
	if err := tx.PutEnrolment(e); err != nil {
		return nil, err
	}
	if n.State != state.Pending {
		return n, nil
	}
	n.Tags = t.Tags
	return n, o.decide(tx, n, t, b)
}

func (o *Office) decide(tx *state.Tx, n *state.Node, t *state.Token, b *module.Brought) error {
	if o.deciding != nil {
		o.deciding(tx, n)
	}
	verdict, reason := o.Policy.judge(t, &n.Profile)
	if verdict == Admit && t.Rejoin != "" && n.ID == t.Rejoin {
		return o.admit(tx, n, n.Name, fmt.Sprintf("token %q lets it come back", t.ID), b)
	}
	switch verdict {
	case Refuse:
		return o.refuse(tx, n, reason, false) // the caller writes it into the log
	case Admit:
		want := t.Name
		if want == "" || hasWildcard(want) {
			want = name.Of(n.Profile.Hostname)
		}
		return o.admit(tx, n, want, reason, b)
	}
	n.State = state.Pending
	n.Decision = o.decision(n, reason)
	if err := tx.PutNode(n); err != nil {
		return err
	}
	return tx.AddEvent(&state.Event{At: n.Decision.At, Kind: "node.pending", Node: n.ID, Token: t.ID,
		Sentence: fmt.Sprintf("machine %q waits for a person as node %q: %s", n.Profile.Hostname, n.ID, reason)})
}

func (o *Office) decision(n *state.Node, reason string) state.Decision {
	p, _ := json.Marshal(n.Profile) // was JSON a moment ago
	return state.Decision{State: n.State, Reason: reason, Profile: digest.FromBytes(p).String(), At: o.Clock.Now().UTC()}
}

// answer is what the host of an enrolment is told, now and each time.
func (o *Office) answer(tx *state.Tx, n *state.Node) (link.EnrolAnswer, error) {
	switch n.State {
	case state.Refused:
		return link.EnrolAnswer{Answer: o.refusal(n)}, nil
	case state.Pending:
		return link.EnrolAnswer{Answer: link.Pending.Answer(o.Clock.Now().UTC(), "")}, nil
	}
	addresses, err := o.addresses(tx)
	if err != nil {
		return link.EnrolAnswer{}, err
	}
	m, err := tx.Mesh()
	if err != nil {
		return link.EnrolAnswer{}, err
	}
	return link.EnrolAnswer{
		Answer: link.Answer{ServerTime: o.Clock.Now().UTC()},
		NodeID: n.ID, Name: n.Name, Mesh: m.ID, Certificate: n.Certificate, Chain: o.Authority.Chain(),
		Addresses: addresses, Epoch: m.Epoch, Generation: n.Wanted.Generation,
	}, nil
}

func (o *Office) addresses(tx *state.Tx) ([]string, error) {
	if a := tx.Addresses(); len(a) > 0 {
		return a, nil
	}
	return o.Addresses()
}

// Gone is what a node is told that may do nothing any more.
func Gone(n *state.Node) error {
	if n.State == state.Retired {
		return link.NodeRevoked.Errorf("node %q has left the mesh", n.Name)
	}
	return link.NodeRevoked.Errorf("node %q was revoked; the machine keeps what it has", cmp.Or(n.Name, n.ID))
}
