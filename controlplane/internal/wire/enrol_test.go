package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/link"
)

func TestEnrolmentFromHelloToTheFirstDeclaration(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t)
		k := p.token(admission.TokenOptions{Tags: []string{"first"}})
		n, req := p.host(k, "one")
		n.HTTP1 = http1
		c, err := n.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var hello link.HelloAnswer
		if _, err := c.JSON(t.Context(), "POST", link.PathHello, []byte(`{"protocol":{"min":1,"max":3},"version":"x"}`), nil, &hello); err != nil {
			t.Fatal(err)
		}
		if hello.Code != "" || hello.Mesh != k.Mesh || !hello.ServerTime.Equal(start) || hello.MaxBody != link.MaxEnrolBody {
			t.Errorf("hello: %+v", hello)
		}
		req.Declaration = []byte(`{"schema":1,"name":"control-plane","generation":3,"resources":[` +
			`{"id":"cfg","type":"file","path":"/etc/cfg","content":"a\n"},` +
			`{"id":"srv","type":"process","name":"srv","command":["/bin/srv"],"after":["cfg"],"restart_on":["cfg"]}]}`)
		a, err := n.Enrol(t.Context(), k, req)
		if err != nil || a.Code != "" || a.Name != "one" || a.Generation != 1 || a.Epoch != 1 || len(a.Addresses) != 1 {
			t.Fatalf("%+v, %v", a, err)
		}
		if a, err := n.Ack(t.Context()); err != nil || a.Code != "" {
			t.Fatalf("%+v, %v", a, err)
		}
		m := p.await(p.open(n), link.MessageDeclaration).Declaration
		if m.Mesh != k.Mesh || m.Epoch != 1 || m.Generation != 1 || m.Check(m.Document) != nil {
			t.Errorf("%+v", m)
		}
		for _, want := range []string{`"name":"one"`, `"control-plane/cfg"`, `"control-plane/srv"`, `"after":["control-plane/cfg"]`, `"path":"/etc/cfg"`} {
			if !bytes.Contains(m.Document, []byte(want)) {
				t.Errorf("the first declaration has no %s: %s", want, m.Document)
			}
		}
	})
}

func TestHelloNamesWhoIsTooOldOrTooNew(t *testing.T) {
	p := newPlane(t)
	n, _ := p.host(p.token(admission.TokenOptions{}), "x")
	for protocol, code := range map[string]link.Code{
		`{"min":0,"max":0}`: link.ProtocolTooOld, `{"min":2,"max":9}`: link.ProtocolTooNew,
	} {
		_, a, err := n.Post(t.Context(), link.PathHello, json.RawMessage(`{"protocol":`+protocol+`}`))
		if err != nil {
			t.Fatal(err)
		}
		wantAnswer(t, a, code)
	}
}

func TestWhoIsRefusedAndTold(t *testing.T) {
	for name, c := range map[string]struct {
		opts admission.TokenOptions
		// change prepares the refusal; it may return another token to come with.
		change func(p *plane, k link.Token, req *link.EnrolRequest) link.Token
		code   link.Code
		nodes  int
	}{
		"used": {change: func(p *plane, k link.Token, _ *link.EnrolRequest) link.Token {
			n, req := p.host(k, "first")
			if a, err := n.Enrol(p.t.Context(), k, req); err != nil || a.Code != "" {
				p.t.Fatalf("%+v, %v", a, err)
			}
			return k
		}, code: link.TokenUsed, nodes: 1},
		"expired": {change: func(p *plane, k link.Token, _ *link.EnrolRequest) link.Token {
			p.clock.set(start.Add(time.Hour + time.Second))
			return k
		}, code: link.TokenExpired},
		"revoked": {change: func(p *plane, k link.Token, _ *link.EnrolRequest) link.Token {
			if _, _, err := p.office.RevokeToken(k.ID); err != nil {
				p.t.Fatal(err)
			}
			return k
		}, code: link.TokenRevoked},
		"unknown": {change: func(p *plane, k link.Token, _ *link.EnrolRequest) link.Token {
			return foreign(p, k, "0123456789abcdef")
		}, code: link.TokenUnknown},
		"bad proof": {change: func(p *plane, k link.Token, _ *link.EnrolRequest) link.Token {
			return foreign(p, k, k.ID) // the right id, another secret
		}, code: link.BadProof},
		"scope": {opts: admission.TokenOptions{Name: "web-*"}, code: link.ScopeMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			k := p.token(c.opts)
			n, req := p.host(k, "db")
			if c.change != nil {
				k = c.change(p, k, &req)
			}
			a, err := n.Enrol(t.Context(), k, req)
			if err != nil {
				t.Fatal(err)
			}
			wantAnswer(t, a.Answer, c.code)
			if a.NodeID != "" || a.Certificate != nil {
				t.Errorf("refused, and given %+v", a)
			}
			if got := p.count("node.admitted"); got != c.nodes {
				t.Errorf("%d nodes, want %d", got, c.nodes)
			}
			if got := p.count("enrolment.refused"); got != 1 {
				t.Errorf("%d lines in the log, want one", got)
			}
		})
	}
}

// foreign makes a token of the same mesh with another secret, and an id.
func foreign(p *plane, k link.Token, id string) link.Token {
	p.t.Helper()
	other, err := link.NewToken(k.Mesh, k.Addresses, k.Pins, k.Expires, "")
	if err != nil {
		p.t.Fatal(err)
	}
	other.ID = id
	return other
}

func TestATokenOfAnotherMeshMeetsNobodyItTrusts(t *testing.T) {
	here, there := newPlane(t), newPlane(t)
	k := there.token(admission.TokenOptions{})
	k.Addresses = []string{here.address}
	n, req := here.host(k, "x")
	_, err := n.Enrol(t.Context(), k, req)
	if link.CodeOf(err) != link.PinMismatch {
		t.Errorf("%v", err)
	}
}

func TestAProofIsWorthOneBodyOnOneConnection(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t)
		k := p.token(admission.TokenOptions{})
		n, req := p.host(k, "x")
		n.HTTP1 = http1
		body, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		dial := func() *wiretest.Conn {
			c, err := n.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			return c
		}
		send := func(c *wiretest.Conn, body []byte, h map[string]string) (a link.EnrolAnswer) {
			t.Helper()
			if _, err := c.JSON(t.Context(), "POST", link.PathEnrol, body, h, &a); err != nil {
				t.Fatal(err)
			}
			return a
		}
		one, two := dial(), dial()
		h, err := one.Prove(k, body)
		if err != nil {
			t.Fatal(err)
		}
		wantAnswer(t, send(two, body, h).Answer, link.BadProof)
		swapped := bytes.Replace(body, []byte(`"hostname":"x"`), []byte(`"hostname":"y"`), 1)
		if bytes.Equal(swapped, body) {
			t.Fatal("the body was not swapped")
		}
		wantAnswer(t, send(one, swapped, h).Answer, link.BadProof)
		for name, bad := range map[string]string{"empty": "", "not base64": "!", "short": "AAAA"} {
			a := send(one, body, map[string]string{link.HeaderToken: k.ID, link.HeaderProof: bad})
			if a.Code != link.BadProof {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if a := send(one, body, h); a.Code != "" {
			t.Errorf("the right one: %+v", a)
		}
	})
}

func TestAnUnknownTokenIsRefusedBeforeTheBody(t *testing.T) {
	p := newPlane(t)
	k := p.token(admission.TokenOptions{})
	n, _ := p.host(k, "x")
	n.HTTP1 = true
	c, err := n.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A megabyte is announced and never sent.
	_, err = io.WriteString(c.TLS, "POST "+link.PathEnrol+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n"+
		link.HeaderToken+": 0123456789abcdef\r\n"+link.HeaderProof+": AAAA\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.TLS.SetReadDeadline(time.Now().Add(20 * time.Second))
	answer, err := io.ReadAll(io.LimitReader(c.TLS, 12))
	if err != nil || string(answer) != "HTTP/1.1 403" {
		t.Errorf("%q, %v", answer, err)
	}
}

// slow is a body of which the second half takes its time.
type slow struct {
	halves [][]byte
	wait   time.Duration
}

func (s *slow) Read(b []byte) (int, error) {
	if len(s.halves) == 0 {
		return 0, io.EOF
	}
	if len(s.halves) == 1 {
		<-time.After(s.wait)
	}
	n := copy(b, s.halves[0])
	if s.halves[0] = s.halves[0][n:]; len(s.halves[0]) == 0 {
		s.halves = s.halves[1:]
	}
	return n, nil
}

func TestASlowBodyIsAnswered(t *testing.T) {
	over(t, func(t *testing.T, http1 bool) {
		p := newPlane(t, func(s *Server) { s.write = 50 * time.Millisecond })
		k := p.token(admission.TokenOptions{})
		n, req := p.host(k, "x")
		n.HTTP1 = http1
		body, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		c, err := n.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		h, err := c.Prove(k, body)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Send(t.Context(), "POST", link.PathEnrol, &slow{[][]byte{body[:100], body[100:]}, 300 * time.Millisecond}, h)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var a link.EnrolAnswer
		if err := json.NewDecoder(res.Body).Decode(&a); err != nil || a.Code != "" || a.Name != "x" {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

func TestABodyThatIsTooLongIsRefused(t *testing.T) {
	p := newPlane(t)
	k := p.token(admission.TokenOptions{})
	n, _ := p.host(k, "x")
	c, err := n.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := bytes.Repeat([]byte(" "), link.MaxEnrolBody+1)
	h, err := c.Prove(k, body)
	if err != nil {
		t.Fatal(err)
	}
	var a link.EnrolAnswer
	status, err := c.JSON(t.Context(), "POST", link.PathEnrol, body, h, &a)
	if err != nil || status != http.StatusForbidden {
		t.Fatalf("%d, %v", status, err)
	}
	wantAnswer(t, a.Answer, link.Refused)
}

func TestAPendingMachineIsToldSoUntilItIsApproved(t *testing.T) {
	p := newPlane(t)
	k := p.token(admission.TokenOptions{Pending: true})
	n, req := p.host(k, "x")
	for range 2 {
		a, err := n.Enrol(t.Context(), k, req)
		if err != nil {
			t.Fatal(err)
		}
		wantAnswer(t, a.Answer, link.Pending)
	}
	if _, err := p.office.Approve("x", "", nil, ""); err != nil {
		t.Fatal(err)
	}
	if a, err := n.Enrol(t.Context(), k, req); err != nil || a.Code != "" || a.Name != "x" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestRefusalsCannotFillTheLog(t *testing.T) {
	var a audit
	written := 0
	for range 1000 {
		if ok, _ := a.next(start); ok {
			written++
		}
	}
	ok, passed := a.next(start.Add(time.Minute))
	if written != auditRate || !ok || passed != 1000-auditRate {
		t.Errorf("%d written, then %v and %d passed over", written, ok, passed)
	}
}

func TestTheLogNamesNoSecret(t *testing.T) {
	p := newPlane(t)
	k := p.token(admission.TokenOptions{})
	n, req := p.host(k, "x")
	if _, err := n.Enrol(t.Context(), k, req); err != nil {
		t.Fatal(err)
	}
	other, again := p.host(k, "y")
	if _, err := other.Enrol(t.Context(), k, again); err != nil {
		t.Fatal(err)
	}
	if secret := strings.Split(k.Text(), ".")[2]; strings.Contains(p.log.String(), secret) {
		t.Error("the secret is in the log")
	}
	if !strings.Contains(p.log.String(), "token_used") {
		t.Errorf("the log says nothing of the refusal: %s", p.log)
	}
}
