package admission_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/claim"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

func says(t *testing.T, key, value string) []claim.Claim {
	t.Helper()
	c, ok := claim.New(key, value)
	if !ok {
		t.Fatalf("there is no claim %q", key)
	}
	return []claim.Claim{c}
}

func TestTheFirstRuleThatHoldsDecides(t *testing.T) {
	systemd, openrc := says(t, "init", "systemd"), says(t, "init", "openrc")
	for name, x := range map[string]struct {
		policy  admission.Policy
		pending bool
		tags    []string
		want    state.NodeState
		reason  string // with TOKEN for the token's id
	}{
		"no rule, and the token admits":       {want: state.Admitted, reason: `token "TOKEN" admits`},
		"no rule, and the token lets wait":    {pending: true, want: state.Pending, reason: `token "TOKEN" lets a person decide`},
		"none holds":                          {policy: admission.Policy{{Decision: admission.Refuse, Profile: openrc}}, want: state.Admitted, reason: `token "TOKEN" admits`},
		"one refuses":                         {policy: admission.Policy{{Decision: admission.Refuse, Reason: "no"}}, want: state.Refused, reason: "admission rule 1 refuses: no"},
		"one lets wait":                       {policy: admission.Policy{{Decision: admission.Wait, Profile: systemd}}, want: state.Pending, reason: "admission rule 1 lets a person decide"},
		"one admits":                          {policy: admission.Policy{{Decision: admission.Admit, Hostname: "web-?"}}, want: state.Admitted, reason: "admission rule 1 admits"},
		"an earlier one admits":               {policy: admission.Policy{{Decision: admission.Admit, Tag: "web"}, {Decision: admission.Refuse}}, tags: []string{"web"}, want: state.Admitted, reason: "admission rule 1 admits"},
		"not that tag":                        {policy: admission.Policy{{Decision: admission.Admit, Tag: "db"}, {Decision: admission.Refuse}}, tags: []string{"web"}, want: state.Refused, reason: "admission rule 2 refuses"},
		"not that token":                      {policy: admission.Policy{{Decision: admission.Refuse, Token: "0123456789abcdef"}}, want: state.Admitted, reason: `token "TOKEN" admits`},
		"not that hostname":                   {policy: admission.Policy{{Decision: admission.Refuse, Hostname: "db-*"}}, want: state.Admitted, reason: `token "TOKEN" admits`},
		"all that is asked must hold":         {policy: admission.Policy{{Decision: admission.Refuse, Hostname: "web-*", Profile: openrc}}, want: state.Admitted, reason: `token "TOKEN" admits`},
		"no rule admits where a token waits":  {policy: admission.Policy{{Decision: admission.Admit}}, pending: true, want: state.Pending, reason: `token "TOKEN" lets a person decide, though admission rule 1 admits`},
		"a rule refuses where a token waits":  {policy: admission.Policy{{Decision: admission.Refuse}}, pending: true, want: state.Refused, reason: "admission rule 1 refuses"},
		"the machine's other name for itself": {policy: admission.Policy{{Decision: admission.Refuse, Profile: says(t, "architecture", "x86_64")}}, want: state.Refused, reason: "admission rule 1 refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.Policy = x.policy
			token := o.token(t, admission.TokenOptions{Pending: x.pending, Tags: x.tags})
			if _, err := o.Enrol(token, host(t, "web-1")); err != nil {
				t.Fatal(err)
			}
			n := o.nodes(t)[0]
			want := strings.Replace(x.reason, "TOKEN", token, 1)
			if n.State != x.want || n.Decision.State != x.want || n.Decision.Reason != want || n.Decision.ByPerson {
				t.Errorf("%s, decision %+v; want %s: %s", n.State, n.Decision, x.want, want)
			}
			if len(n.Decision.Profile) != len("sha256:")+64 || n.Decision.At != start {
				t.Errorf("decision %+v", n.Decision)
			}
		})
	}
}

// What a machine says is in the state before anybody decides, whatever comes of it.
func TestTheRecordIsWrittenBeforeTheDecision(t *testing.T) {
	for want, rules := range map[state.NodeState]admission.Policy{
		state.Admitted: nil, state.Pending: {{Decision: admission.Wait}}, state.Refused: {{Decision: admission.Refuse}},
	} {
		o := newOffice(t)
		o.Policy = rules
		seen := 0
		o.Deciding(func(tx *state.Tx, n *state.Node) {
			seen++
			kept, err := tx.Node(n.ID)
			if err != nil || kept == nil || kept.Profile.Hostname != "web" || kept.Profile.Init != "systemd" || kept.Decision.State != "" {
				t.Errorf("%s: at the decision the record is %+v, %v", want, kept, err)
			}
			inv, err := tx.Inventory(n.ID)
			if err != nil || inv == nil || inv.Version != "1.2.3" {
				t.Errorf("%s: at the decision the inventory is %+v, %v", want, inv, err)
			}
		})
		req := host(t, "web")
		req.Inventory.Version = "1.2.3"
		if _, err := o.Enrol(o.token(t, admission.TokenOptions{}), req); err != nil {
			t.Fatal(err)
		}
		n := o.nodes(t)[0]
		if seen != 1 || n.State != want {
			t.Errorf("%s: decided %d times, and is %s", want, seen, n.State)
		}
		// And afterwards both are there to be looked at.
		_ = o.Store.View(func(tx *state.Tx) error {
			if inv, err := tx.Inventory(n.ID); err != nil || inv == nil || inv.Version != "1.2.3" || n.Profile.Hostname != "web" {
				t.Errorf("%s: afterwards: %+v, %+v, %v", want, n.Profile, inv, err)
			}
			return nil
		})
	}
}

// place wants that a token has so many places left and holders.
func (o *office) place(t *testing.T, token string, left, holders int) {
	t.Helper()
	ts, err := o.Tokens()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range ts {
		if x.ID == token && (x.Left != left || len(x.Holders) != holders) {
			t.Errorf("token %s: %d places left, held by %+v; want %d and %d", token, x.Left, x.Holders, left, holders)
		}
	}
}

func wantRefused(t *testing.T, a link.EnrolAnswer, err error, sentence string) {
	t.Helper()
	if err != nil || a.Code != link.Refused || a.Retry != link.RetryNever || !strings.Contains(a.Sentence, sentence) || a.Remedy == "" || a.NodeID != "" || a.Certificate != nil {
		t.Errorf("%+v, %v; want refused: %s", a, err, sentence)
	}
}

func TestARefusedMachineGivesItsPlaceBackAndComesBackAsTheSame(t *testing.T) {
	o := newOffice(t)
	o.Policy = admission.Policy{{Decision: admission.Refuse, Hostname: "web", Reason: "no web"}}
	token := o.token(t, admission.TokenOptions{})
	req := host(t, "web")
	for range 2 { // an answer may be lost
		a, err := o.Enrol(token, req)
		wantRefused(t, a, err, "this machine is refused: admission rule 1 refuses: no web")
	}
	o.place(t, token, 1, 0)
	first := o.nodes(t)
	if len(first) != 1 || first[0].Certificate != nil || first[0].Name != "" {
		t.Fatalf("%+v", first)
	}
	// The place is free for another.
	if a, err := o.Enrol(token, host(t, "db")); err != nil || a.Name != "db" {
		t.Fatalf("%+v, %v", a, err)
	}
	o.place(t, token, 0, 1)
	a, err := o.Enrol(token, req)
	wantRefused(t, a, err, "no web") // not: the token has been used

	// With a new token it is decided on anew, by what it says now.
	again := o.token(t, admission.TokenOptions{Tags: []string{"t"}})
	a, err = o.Enrol(again, req)
	wantRefused(t, a, err, "no web")
	o.place(t, again, 1, 0)
	req.Profile.Hostname = "front"
	req.Declaration = []byte(`{"schema":1,"name":"had","resources":[{"id":"m","type":"file","path":"/etc/m","content":"x"}]}`)
	a, err = o.Enrol(again, req)
	if err != nil || a.Name != "front" || a.NodeID != first[0].ID || a.Generation != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	o.place(t, again, 0, 1)
	ns := o.nodes(t)
	if len(ns) != 2 {
		t.Errorf("%d nodes", len(ns))
	}
	for _, n := range ns {
		if n.ID == first[0].ID && (n.State != state.Admitted || n.Profile.Hostname != "front" || strings.Join(n.Tags, " ") != "t") {
			t.Errorf("%+v", n)
		}
	}
}

func TestARuleThatIsGoneRefusesNoMore(t *testing.T) {
	o := newOffice(t)
	o.Policy = admission.Policy{{Decision: admission.Refuse}}
	token := o.token(t, admission.TokenOptions{})
	req := host(t, "web")
	a, err := o.Enrol(token, req)
	wantRefused(t, a, err, "rule 1")
	o.restart(t) // with no rules
	if a, err := o.Enrol(token, req); err != nil || a.Name != "web" {
		t.Fatalf("%+v, %v", a, err)
	}
	o.place(t, token, 0, 1)
	if n := o.nodes(t); len(n) != 1 {
		t.Errorf("%d nodes", len(n))
	}
}

func TestAPersonsRefusalStandsUntilAnotherTokenOrAnApproval(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, admission.TokenOptions{Pending: true, Uses: 2})
	req := host(t, "web")
	if a, err := o.Enrol(token, req); err != nil || a.Code != link.Pending {
		t.Fatalf("%+v, %v", a, err)
	}
	o.place(t, token, 1, 1)
	n, already, err := o.Refuse("web", "not one of ours")
	if err != nil || already || n.State != state.Refused || !n.Decision.ByPerson {
		t.Fatalf("%+v, %v, %v", n, already, err)
	}
	if _, already, err := o.Refuse(n.ID, ""); err != nil || !already {
		t.Errorf("once more: %v, %v", already, err)
	}
	o.place(t, token, 2, 0)
	for range 2 {
		a, err := o.Enrol(token, req)
		wantRefused(t, a, err, "a person refused: not one of ours")
	}
	// Another token is another person's word.
	other := o.token(t, admission.TokenOptions{Pending: true})
	if a, err := o.Enrol(other, req); err != nil || a.Code != link.Pending {
		t.Fatalf("%+v, %v", a, err)
	}
	o.place(t, other, 0, 1)
	if _, _, err := o.Refuse("web", ""); err != nil {
		t.Fatal(err)
	}
	o.place(t, other, 1, 0)

	// Approved, it is admitted when it asks again, with what it has by then; the
	// token may be long over.
	if n, err := o.Approve("web", "front", []string{"edge"}, ""); err != nil || n.State != state.Pending || n.Name != "" {
		t.Fatalf("%+v, %v", n, err)
	}
	o.restart(t)
	o.Clock = clock.At(start.Add(30 * 24 * time.Hour))
	o.Policy = admission.Policy{{Decision: admission.Refuse}} // a person's word is more than a rule
	req.Declaration = []byte(`{"schema":1,"name":"had","resources":[{"id":"m","type":"file","path":"/etc/m","content":"x"}]}`)
	a, err := o.Enrol(other, req)
	if err != nil || a.Name != "front" || a.Generation != 1 || a.NodeID != n.ID {
		t.Fatalf("%+v, %v", a, err)
	}
	if err := o.Ack(a.NodeID, req.EnrolmentID); err != nil {
		t.Fatal(err)
	}
	got := o.nodes(t)[0]
	if got.State != state.Enrolled || strings.Join(got.Tags, " ") != "edge" || got.Approval != nil || got.Decision.Reason != "a person approved" {
		t.Errorf("%+v", got)
	}
	o.place(t, other, 1, 0)
	if _, _, err := o.Refuse("front", ""); err == nil || !strings.Contains(err.Error(), "enrolled and not pending") {
		t.Errorf("refusing a node: %v", err)
	}
}

func TestAPendingMachineThatIsRevokedGivesItsPlaceBack(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, admission.TokenOptions{Pending: true})
	req := host(t, "web")
	if _, err := o.Enrol(token, req); err != nil {
		t.Fatal(err)
	}
	err := o.Store.Update(func(tx *state.Tx) error { _, _, err := o.Revoke(tx, "web"); return err })
	if err != nil {
		t.Fatal(err)
	}
	o.place(t, token, 1, 0)
	if a, err := o.Enrol(token, host(t, "other")); err != nil || a.Code != link.Pending {
		t.Errorf("%+v, %v", a, err)
	}
	_, err = o.Enrol(token, req)
	wantCode(t, err, link.NodeRevoked)
	o.place(t, token, 0, 1)
}

// The records of refused machines are bounded: a token's holder may be refused as
// often as he likes.
func TestOnlyTheNewestRefusedAreKept(t *testing.T) {
	o := newOffice(t)
	o.Policy = admission.Policy{{Decision: admission.Refuse}}
	token := o.token(t, admission.TokenOptions{})
	first := host(t, "first")
	for i := range 203 {
		req := first
		if i > 0 {
			req = host(t, "next")
		}
		if a, err := o.Enrol(token, req); err != nil || a.Code != link.Refused {
			t.Fatalf("%d: %+v, %v", i, a, err)
		}
	}
	ns := o.nodes(t)
	for _, n := range ns {
		if n.Profile.Hostname == "first" {
			t.Error("the oldest is kept")
		}
	}
	if len(ns) != 200 {
		t.Errorf("%d are kept", len(ns))
	}
	_ = o.Store.View(func(tx *state.Tx) error {
		if e, err := tx.Enrolment(first.EnrolmentID); err != nil || e != nil {
			t.Errorf("its enrolment is kept: %+v, %v", e, err)
		}
		return nil
	})
	o.place(t, token, 1, 0)
	// It is nobody's key any more, and comes as a new one.
	o.Policy = nil
	if a, err := o.Enrol(token, first); err != nil || a.Name != "first" {
		t.Errorf("%+v, %v", a, err)
	}
}
