package admission_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestNameComesFromTokenOrHostname(t *testing.T) {
	for _, c := range []struct{ pattern, hostname, want string }{
		{"", "web1", "web1"},
		{"", "Web1.Example.COM", "web1-example-com"},
		{"", "--a__b--", "a-b"},
		{"", strings.Repeat("x", 200), strings.Repeat("x", 63)},
		{"gate", "web1", "gate"},
		{"web-*", "web-7", "web-7"},
		{"w?b", "wab", "wab"},
	} {
		o := newOffice(t)
		a, err := o.Enrol(o.token(t, admission.TokenOptions{Name: c.pattern}), host(t, c.hostname))
		if err != nil || a.Name != c.want {
			t.Errorf("%q, %q: name %q, %v, want %q", c.pattern, c.hostname, a.Name, err, c.want)
		}
	}
	o := newOffice(t)
	a, err := o.Enrol(o.token(t, admission.TokenOptions{}), host(t, "…"))
	if err != nil || a.Name != "node-"+a.NodeID[:8] {
		t.Errorf("no usable hostname: name %q, %v", a.Name, err)
	}
}

func TestTokenOptionsAreBounded(t *testing.T) {
	o := newOffice(t)
	good := admission.TokenOptions{TTL: time.Hour, Uses: 1}
	for name, change := range map[string]func(*admission.TokenOptions){
		"too long":   func(p *admission.TokenOptions) { p.TTL = 169 * time.Hour },
		"no time":    func(p *admission.TokenOptions) { p.TTL = 0 },
		"no use":     func(p *admission.TokenOptions) { p.Uses = 0 },
		"bad name":   func(p *admission.TokenOptions) { p.Name = "a.b" },
		"bad match":  func(p *admission.TokenOptions) { p.Name = "[ab]*" },
		"bad tag":    func(p *admission.TokenOptions) { p.Tags = []string{"a b"} },
		"empty tag":  func(p *admission.TokenOptions) { p.Tags = []string{""} },
		"upper case": func(p *admission.TokenOptions) { p.Name = "WEB-*" },
	} {
		bad := good
		change(&bad)
		if _, err := o.CreateToken(bad, where); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheStateHoldsNoSecretOfAToken(t *testing.T) {
	o := newOffice(t)
	k, err := o.CreateToken(admission.TokenOptions{TTL: time.Hour, Uses: 1}, where)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Enrol(k.ID, host(t, "web")); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(o.path)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.Split(k.Text(), ".")[2]
	if len(secret) < 40 || bytes.Contains(b, []byte(secret)) {
		t.Error("the secret of the token is in the state")
	}
	if !bytes.Contains(b, []byte(k.ID)) {
		t.Error("the token is not in the state: the test looks in the wrong place")
	}
}

func TestAnotherTokenGivesThePlaceOfTheFirstBack(t *testing.T) {
	o := newOffice(t)
	first, second := o.token(t, admission.TokenOptions{}), o.token(t, admission.TokenOptions{})
	req := host(t, "web")
	a, err := o.Enrol(first, req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.Enrol(second, req)
	if err != nil || b.NodeID != a.NodeID {
		t.Fatalf("%+v, %v", b, err)
	}
	if _, err := o.Enrol(first, host(t, "other")); err != nil {
		t.Errorf("the first token is not free: %v", err)
	}
	_, err = o.Enrol(second, host(t, "third"))
	wantCode(t, err, link.TokenUsed)
	if n := o.nodes(t); len(n) != 2 {
		t.Errorf("%d nodes of two tokens", len(n))
	}
}

func TestARevokedTokenEndsTheWaitOfItsPendingMachine(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, admission.TokenOptions{Pending: true})
	req := host(t, "web")
	if _, err := o.Enrol(token, req); err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.RevokeToken(token); err != nil {
		t.Fatal(err)
	}
	_, err := o.Enrol(token, req)
	wantCode(t, err, link.TokenRevoked)
}

func FuzzEnrol(f *testing.F) {
	f.Add([]byte(`{"enrolment_id":"00000000000000000000000000000000","protocol":1,"csr":"AA=="}`))
	f.Add([]byte(`{"enrolment_id":"x","protocol":-1,"declaration":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var req link.EnrolRequest
		if json.Unmarshal(body, &req) != nil {
			return
		}
		o := newOffice(t)
		a, err := o.Enrol(o.token(t, admission.TokenOptions{}), req)
		if (err == nil) != (a.NodeID != "") || err != nil && link.CodeOf(err) == "" {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
