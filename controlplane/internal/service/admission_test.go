package service_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// asks sends the request of a machine that enrols, and returns the answer.
func (m *machine) asks(made admin.TokenMade, hostname string) link.EnrolAnswer {
	m.t.Helper()
	token, err := link.ParseToken([]byte(made.Token))
	if err != nil {
		m.t.Fatal(err)
	}
	n, err := wiretest.New(token)
	if err != nil {
		m.t.Fatal(err)
	}
	req, err := n.Request(hostname)
	if err != nil {
		m.t.Fatal(err)
	}
	a, err := n.Enrol(m.t.Context(), token, req)
	if err != nil {
		m.t.Fatal(err)
	}
	return a
}

func TestTheRulesOfTheConfigurationDecide(t *testing.T) {
	m := newMachine(t)
	rules := "listen = \"127.0.0.1:0\"\n[[admission]]\ndecision = \"refuse\"\nhostname = \"lxc-*\"\nprofile.init = \"systemd\"\nreason = \"no containers\"\n" +
		"[[admission]]\ndecision = \"pending\"\ntag = \"edge\"\n"
	if err := os.WriteFile(m.l.ControllerConfig(), []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	m.serve()
	made := ask(m, admin.TokenCreate.Ask, admission.TokenOptions{TTL: time.Hour, Uses: 5, Tags: []string{"edge"}})
	if a := m.asks(made, "lxc-1"); a.Code != link.Refused || !strings.Contains(a.Sentence, "no containers") {
		t.Errorf("%+v", a)
	}
	if a := m.asks(made, "web"); a.Code != link.Pending {
		t.Errorf("%+v", a)
	}
	s := ask(m, admin.GetStatus.Ask, admin.None{})
	if len(s.Admission) != 2 || strings.Join(s.Admission[0].When, " ") != "hostname=lxc-* profile.init=systemd" || s.Admission[1].Decision != "pending" {
		t.Errorf("status: %+v", s.Admission)
	}
	if s.Nodes["refused"] != 1 || s.Nodes["pending"] != 1 {
		t.Errorf("status: %v", s.Nodes)
	}
	d := ask(m, admin.Show.Ask, admin.Ref{Ref: "lxc-1"})
	if d.State != "refused" || d.Decision.Reason != "admission rule 1 refuses: no containers" || d.Decision.Profile == "" ||
		d.Profile.Init != "systemd" || d.Inventory == nil || len(d.Grants) != 0 {
		t.Errorf("show: %+v", d)
	}
	r := ask(m, admin.Refuse.Ask, admin.Refusal{Ref: "web", Reason: "not ours"})
	if r.State != "refused" || r.Already {
		t.Errorf("refuse: %+v", r)
	}
	if r := ask(m, admin.Refuse.Ask, admin.Refusal{Ref: r.ID}); !r.Already {
		t.Errorf("refuse again: %+v", r)
	}
	if ts := ask(m, admin.TokenList.Ask, admin.None{}); ts[0].Left != 5 || len(ts[0].Holders) != 0 {
		t.Errorf("the places: %+v", ts)
	}
	if n := ask(m, admin.Approve.Ask, admin.Approval{Ref: "lxc-1"}); n.State != "pending" || n.Name != "" {
		t.Errorf("approve: %+v", n)
	}
	if _, err := admin.Refuse.Ask(t.Context(), m.cl, admin.Refusal{Ref: "lxc-1", Reason: "a\nb"}); fault.KindOf(err) != fault.Usage {
		t.Errorf("a reason of two lines: %v", err)
	}
}

func TestABrokenRuleRefusesTheStart(t *testing.T) {
	m := newMachine(t)
	if err := os.WriteFile(m.l.ControllerConfig(), []byte("[[admission]]\ndecision = \"refuse\"\nhostnam = \"x\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m.refused(t, m.l.ControllerConfig(), "line 3", `"hostnam"`)
}

// A state that was written before there were grants has nodes that never got one.
func TestNodesOfAnOlderStateReadTheirContent(t *testing.T) {
	m := newMachine(t)
	stop := m.serve()
	made := ask(m, admin.TokenCreate.Ask, admission.TokenOptions{TTL: time.Hour, Uses: 2})
	n := m.enrol(made, "one", "")
	gone := m.enrol(made, "two", "")
	if a, err := n.Ack(t.Context()); err != nil || a.Code != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	ask(m, admin.Revoke.Ask, admin.Leaving{Ref: "two"})
	ask(m, admin.Declare.Ask, admin.Declaration{Name: "m", Placement: []string{"every"},
		Document: []byte(`{"schema":1,"name":"m","resources":[{"id":"m","type":"file","path":"/etc/m","content":"x"}]}`)})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(m.l.ControllerStore(), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { // as the file was
		return errors.Join(tx.DeleteBucket([]byte("grants")), tx.DeleteBucket([]byte("refused")))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	stop = m.serve()
	n.Address = ask(m, admin.AddressList.Ask, admin.None{}).Addresses[0]
	d := ask(m, admin.Show.Ask, admin.Ref{Ref: "one"})
	if len(d.Grants) != 1 || d.Grants[0].Provider != "content" || d.Grants[0].State != state.Granted {
		t.Errorf("%+v", d.Grants)
	}
	if status, body, err := n.Get(t.Context(), link.PathContent+d.Declaration, nil); err != nil || status != http.StatusOK || !strings.Contains(string(body), "/etc/m") {
		t.Errorf("%d %q, %v", status, body, err)
	}
	if d := ask(m, admin.Show.Ask, admin.Ref{Ref: gone.ID}); len(d.Grants) != 0 {
		t.Errorf("a revoked node got %+v", d.Grants)
	}

	// What a provider that is not there has never said to be gone is warned of.
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s, err := state.Open(m.l.ControllerStore())
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(func(tx *state.Tx) error {
		return tx.PutGrant(&state.Grant{Node: gone.ID, Provider: "registry", State: state.Revoking, Since: time.Now().Add(-time.Hour), Error: "connection refused"})
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		stop = m.serve()
		if s := ask(m, admin.GetStatus.Ask, admin.None{}); !strings.Contains(strings.Join(s.Warnings, "\n"), `1 grant is not taken away at "registry", the oldest for`) ||
			!strings.Contains(strings.Join(s.Warnings, "\n"), "connection refused") {
			t.Errorf("status warns of %q", s.Warnings)
		}
		if d := ask(m, admin.Show.Ask, admin.Ref{Ref: gone.ID}); len(d.Grants) != 1 || d.Grants[0].State != state.Revoking {
			t.Errorf("show: %+v", d.Grants)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}
