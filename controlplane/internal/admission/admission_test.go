package admission_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var where = []string{"192.0.2.1:7443"}

// office is an Office whose process can be ended and started again.
type office struct {
	*admission.Office
	path string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{path: filepath.Join(t.TempDir(), "state.db")}
	o.open(t)
	t.Cleanup(func() { o.Store.Close() })
	return o
}

func (o *office) open(t *testing.T) {
	t.Helper()
	s, err := state.Open(o.path)
	if err != nil {
		t.Fatal(err)
	}
	_, a, err := admission.Found(s, clock.At(start))
	if err != nil {
		t.Fatal(err)
	}
	o.Office = &admission.Office{
		Store: s, Authority: a, Clock: clock.At(start), Addresses: func() ([]string, error) { return where, nil },
	}
}

func (o *office) restart(t *testing.T) {
	t.Helper()
	if err := o.Store.Close(); err != nil {
		t.Fatal(err)
	}
	o.open(t)
}

func (o *office) at(d time.Duration) { o.Clock = clock.At(start.Add(d)) }

func (o *office) token(t *testing.T, opts admission.TokenOptions) string {
	t.Helper()
	if opts.TTL == 0 {
		opts.TTL = time.Hour
	}
	if opts.Uses == 0 {
		opts.Uses = 1
	}
	k, err := o.CreateToken(opts, where)
	if err != nil {
		t.Fatal(err)
	}
	return k.ID
}

func (o *office) nodes(t *testing.T) (out []*state.Node) {
	t.Helper()
	err := o.Store.View(func(tx *state.Tx) (err error) {
		out, err = tx.Nodes()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// host is a request to enrol of a machine with a key of its own.
func host(t *testing.T, hostname string) link.EnrolRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	var id [16]byte
	_, _ = rand.Read(id[:])
	return link.EnrolRequest{
		EnrolmentID: hex.EncodeToString(id[:]), Protocol: 1, CSR: csr,
		Profile: profile.Profile{Architecture: "amd64", Init: "systemd", Hostname: hostname, Schema: 1},
	}
}

func wantCode(t *testing.T, err error, code link.Code) {
	t.Helper()
	if got := link.CodeOf(err); got != code {
		t.Errorf("code %q (%v), want %q", got, err, code)
	}
}

func TestTwoHundredHostsOnASingleUseTokenAreOneNode(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, admission.TokenOptions{})
	const hosts = 200
	reqs := make([]link.EnrolRequest, hosts)
	for i := range reqs {
		reqs[i] = host(t, fmt.Sprintf("h%d", i))
	}
	var wg sync.WaitGroup
	codes := make([]link.Code, hosts)
	begin := make(chan struct{})
	for i := range reqs {
		wg.Go(func() {
			<-begin
			_, err := o.Enrol(token, reqs[i])
			codes[i] = link.CodeOf(err)
			if err != nil && codes[i] == "" {
				t.Errorf("host %d: %v", i, err)
			}
		})
	}
	close(begin)
	wg.Wait()
	in := 0
	for i, c := range codes {
		switch c {
		case "":
			in++
		case link.TokenUsed:
		default:
			t.Errorf("host %d: code %q", i, c)
		}
	}
	if n := o.nodes(t); in != 1 || len(n) != 1 {
		t.Errorf("%d hosts were let in, %d nodes are there, want one", in, len(n))
	}
}

func TestManyHostsOnATokenOfManyUsesAreAsManyNodes(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, admission.TokenOptions{Uses: 10})
	var wg sync.WaitGroup
	for range 30 {
		req := host(t, "same")
		wg.Go(func() {
			for range 2 { // an answer may be lost
				_, _ = o.Enrol(token, req)
			}
		})
	}
	wg.Wait()
	names := map[string]bool{}
	for _, n := range o.nodes(t) {
		names[n.Name] = true
	}
	if len(names) != 10 || !names["same"] || !names["same-2"] || !names["same-10"] {
		t.Errorf("names %v, want same and same-2 to same-10", names)
	}
}

func TestARetryGetsTheSameAnswerAfterARestartBetweenAnyTwoSteps(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, admission.TokenOptions{})
	req := host(t, "web")
	first, err := o.Enrol(token, req)
	if err != nil {
		t.Fatal(err)
	}
	same := func(when string) {
		t.Helper()
		again, err := o.Enrol(token, req)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		again.ServerTime = first.ServerTime
		if !reflect.DeepEqual(again, first) {
			t.Errorf("%s: another answer:\n%+v\n%+v", when, again, first)
		}
		if n := o.nodes(t); len(n) != 1 {
			t.Errorf("%s: %d nodes", when, len(n))
		}
	}
	same("at once")
	o.restart(t)
	same("after a restart")
	o.at(2 * time.Hour)
	same("after the token's expiry")
	if err := o.Ack(first.NodeID, req.EnrolmentID); err != nil {
		t.Fatal(err)
	}
	o.restart(t)
	if err := o.Ack(first.NodeID, req.EnrolmentID); err != nil {
		t.Errorf("ack again: %v", err)
	}
	same("after the ack")
	if n := o.nodes(t)[0]; n.State != state.Enrolled || n.Name != "web" {
		t.Errorf("node %q is %s", n.Name, n.State)
	}
	_, err = o.Enrol(token, host(t, "other"))
	wantCode(t, err, link.TokenUsed)
}

func TestAnotherKeyForAnEnrolmentIsAConflict(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, admission.TokenOptions{Uses: 5})
	one, two := host(t, "a"), host(t, "b")
	if _, err := o.Enrol(token, one); err != nil {
		t.Fatal(err)
	}
	two.EnrolmentID = one.EnrolmentID
	_, err := o.Enrol(token, two)
	wantCode(t, err, link.EnrolmentConflict)

	again := one
	again.EnrolmentID = strings.Repeat("ab", 16)
	_, err = o.Enrol(token, again)
	wantCode(t, err, link.EnrolmentConflict)
	if n := o.nodes(t); len(n) != 1 {
		t.Errorf("%d nodes", len(n))
	}
}

func TestARefusalLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(o *office, token string, req *link.EnrolRequest) (use string)
		opts    admission.TokenOptions
		code    link.Code
	}{
		"unknown": {prepare: func(*office, string, *link.EnrolRequest) string { return "0123456789abcdef" }, code: link.TokenUnknown},
		"expired": {prepare: func(o *office, token string, _ *link.EnrolRequest) string {
			o.at(time.Hour + time.Second)
			return token
		}, code: link.TokenExpired},
		"revoked": {prepare: func(o *office, token string, _ *link.EnrolRequest) string {
			if _, _, err := o.RevokeToken(token); err != nil {
				panic(err)
			}
			return token
		}, code: link.TokenRevoked},
		"scope":   {opts: admission.TokenOptions{Name: "web-*"}, code: link.ScopeMismatch},
		"too old": {prepare: func(_ *office, t string, r *link.EnrolRequest) string { r.Protocol = 0; return t }, code: link.ProtocolTooOld},
		"too new": {prepare: func(_ *office, t string, r *link.EnrolRequest) string { r.Protocol = 99; return t }, code: link.ProtocolTooNew},
		"bad id":  {prepare: func(_ *office, t string, r *link.EnrolRequest) string { r.EnrolmentID = "x"; return t }, code: link.Refused},
		"bad csr": {prepare: func(_ *office, t string, r *link.EnrolRequest) string { r.CSR[len(r.CSR)-1] ^= 1; return t }, code: link.Refused},
		"bad declaration": {prepare: func(_ *office, t string, r *link.EnrolRequest) string {
			r.Declaration = []byte(`{"schema":1,"name":"x","resources":[],"extra":1}`)
			return t
		}, code: link.Refused},
		"huge profile": {prepare: func(_ *office, t string, r *link.EnrolRequest) string {
			r.Profile.Kernel = strings.Repeat("k", 100<<10)
			return t
		}, code: link.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			token := o.token(t, c.opts)
			req := host(t, "db1")
			use := token
			if c.prepare != nil {
				use = c.prepare(o, token, &req)
			}
			_, err := o.Enrol(use, req)
			wantCode(t, err, c.code)
			if n := o.nodes(t); len(n) != 0 {
				t.Errorf("%d nodes", len(n))
			}
			o.at(0)
			ts, err := o.Tokens()
			if err != nil || len(ts) != 1 || len(ts[0].Holders) != 0 {
				t.Errorf("the token's holders: %+v, %v", ts, err)
			}
		})
	}
}

func TestAPendingMachineWaitsForAPersonThroughRestartAndExpiry(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, admission.TokenOptions{Pending: true, Tags: []string{"lab"}})
	req := host(t, "web")
	req.Declaration = []byte(`{"schema":1,"name":"had","resources":[{"id":"m","type":"file","path":"/etc/m","content":"x"}]}`)
	a, err := o.Enrol(token, req)
	if err != nil || a.Code != link.Pending || a.NodeID != "" || a.Certificate != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	o.restart(t)
	o.at(30 * 24 * time.Hour)
	if a, err = o.Enrol(token, req); err != nil || a.Code != link.Pending {
		t.Fatalf("poll: %+v, %v", a, err)
	}
	if _, err := o.Approve("web", "front", []string{"edge"}, ""); err != nil {
		t.Fatal(err)
	}
	o.restart(t)
	a, err = o.Enrol(token, req)
	if err != nil || a.Code != "" || a.Name != "front" || a.Generation != 1 {
		t.Fatalf("after approval: %+v, %v", a, err)
	}
	n := o.nodes(t)[0]
	if !reflect.DeepEqual(n.Tags, []string{"lab", "edge"}) || n.Decision.Reason != "a person approved" || n.Decision.Profile == "" {
		t.Errorf("node %+v", n)
	}
	_ = o.Store.View(func(tx *state.Tx) error {
		d, err := declaration.Parse(tx.Declaration(n.ID))
		if err != nil || d.Name != "front" || len(d.Resources) != 1 || d.Resources[0].ID != "had/m" {
			t.Errorf("first declaration: %+v, %v", d, err)
		}
		if tx.LocalDeclaration(n.ID) != nil {
			t.Error("the local declaration is still kept")
		}
		return nil
	})
	if _, err := o.Approve("front", "", nil, ""); fault.KindOf(err) != fault.Refused {
		t.Errorf("approve again: %v", err)
	}
}

func TestARevokedNodeKeepsItsNameAndKey(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, admission.TokenOptions{Uses: 3})
	req := host(t, "web")
	if _, err := o.Enrol(token, req); err != nil {
		t.Fatal(err)
	}
	err := o.Store.Update(func(tx *state.Tx) error {
		_, _, err := o.Revoke(tx, "web")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Enrol(token, req)
	wantCode(t, err, link.NodeRevoked)
	req.EnrolmentID = strings.Repeat("cd", 16)
	_, err = o.Enrol(token, req)
	wantCode(t, err, link.NodeRevoked)
	a, err := o.Enrol(token, host(t, "web"))
	if err != nil || a.Name != "web-2" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAckOfAnotherNodesEnrolmentIsRefused(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, admission.TokenOptions{Uses: 2})
	one, two := host(t, "a"), host(t, "b")
	a, err1 := o.Enrol(token, one)
	_, err2 := o.Enrol(token, two)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	wantCode(t, o.Ack(a.NodeID, two.EnrolmentID), link.EnrolmentConflict)
}
