package wire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

// A caller is somebody who asks, with all that he has.
type caller struct {
	*wiretest.Node
	token *link.Token
	req   link.EnrolRequest
	// ack is the enrolment he acknowledges, content what he wants to read.
	ack, content string
}

// callers are all kinds of them, by name.
var callers = map[string]func(p *plane) caller{
	"nobody": func(p *plane) caller {
		n, _ := p.host(p.token(admission.TokenOptions{}), "x")
		return caller{Node: n, ack: n.Enrolment}
	},
	"token":   func(p *plane) caller { return p.comes(admission.TokenOptions{}, "x") },
	"pending": func(p *plane) caller { return p.asks(admission.TokenOptions{Pending: true}, "x", link.Pending) },
	"refused": func(p *plane) caller { return p.asks(admission.TokenOptions{}, "refused", link.Refused) },
	// Nobody has such a certificate; if he had, it would be worth nothing.
	"pending+": func(p *plane) caller {
		return p.certified(p.asks(admission.TokenOptions{Pending: true}, "x", link.Pending))
	},
	"admitted": func(p *plane) caller {
		c := p.asks(admission.TokenOptions{}, "x", "")
		c.content = p.contentOf(c.Node)
		return c
	},
	"enrolled": func(p *plane) caller {
		c := p.enrolled("x")
		c.content = p.contentOf(c.Node)
		return c
	},
	// Another's content, another's enrolment.
	"another": func(p *plane) caller {
		c, owner := p.enrolled("x"), p.enrolled("y")
		c.content, c.ack = p.contentOf(owner.Node), owner.Enrolment
		return c
	},
	"revoked": func(p *plane) caller {
		c := p.enrolled("x")
		c.content = p.contentOf(c.Node)
		p.revoke(c.Node)
		return c
	},
	"unknown": func(p *plane) caller {
		n, _ := p.host(p.token(admission.TokenOptions{}), "x")
		n.ID = wiretest.ID()
		return p.certified(caller{Node: n, ack: n.Enrolment})
	},
	"other mesh": func(p *plane) caller {
		c := newPlane(p.t).enrolled("x")
		c.Address, c.Mesh, c.Pins = p.address, p.office.Authority.Mesh(), []string{p.office.Authority.Pin()}
		return c
	},
	"self-signed": func(p *plane) caller {
		c := p.enrolled("x")
		t := &x509.Certificate{
			SerialNumber: big.NewInt(1), NotAfter: start.Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		t.URIs = append(t.URIs, link.NodeURI(c.Mesh, c.ID))
		der, err := x509.CreateCertificate(rand.Reader, t, t, c.Key.Public(), c.Key)
		if err != nil {
			p.t.Fatal(err)
		}
		c.Certificate = &tls.Certificate{Certificate: [][]byte{der, p.office.Authority.Chain()[0]}, PrivateKey: c.Key}
		return c
	},
	"controller": func(p *plane) caller {
		c := p.enrolled("x")
		var err error
		if c.Certificate, err = p.office.Authority.ServerConfig(p.clock).GetCertificate(nil); err != nil {
			p.t.Fatal(err)
		}
		return c
	},
}

// mayAsk is what a caller is answered on a route: the status, and the code of a
// refusal. none is a caller who does not get past the handshake.
const none = "none"

var mayAsk = map[string]map[string]string{
	"POST /v1/enrol/hello": {
		"nobody": "200", "token": "200", "pending": "200", "refused": "200", "pending+": "200", "admitted": "200", "enrolled": "200",
		"another": "200", "revoked": "200", "unknown": "200", "other mesh": none, "self-signed": none, "controller": none,
	},
	"POST /v1/enrol": {
		"nobody": "403 bad_proof", "token": "200", "pending": "202 pending", "refused": "403 refused", "pending+": "202 pending",
		"admitted": "200", "enrolled": "200", "another": "200", "revoked": "403 node_revoked", "unknown": "403 bad_proof",
		"other mesh": none, "self-signed": none, "controller": none,
	},
	"POST /v1/enrol/ack": {
		"nobody": "403 refused", "token": "403 refused", "pending": "403 refused", "refused": "403 refused", "pending+": "403 refused",
		"admitted": "200", "enrolled": "200", "another": "409 enrolment_conflict", "revoked": "403 node_revoked", "unknown": "403 node_unknown",
		"other mesh": none, "self-signed": none, "controller": none,
	},
	"GET /v1/link": {
		"nobody": "403 refused", "token": "403 refused", "pending": "403 refused", "refused": "403 refused", "pending+": "403 refused",
		"admitted": "200", "enrolled": "200", "another": "200", "revoked": "403 node_revoked", "unknown": "403 node_unknown",
		"other mesh": none, "self-signed": none, "controller": none,
	},
	"POST /v1/reports": {
		"nobody": "403 refused", "token": "403 refused", "pending": "403 refused", "refused": "403 refused", "pending+": "403 refused",
		"admitted": "200", "enrolled": "200", "another": "200", "revoked": "403 node_revoked", "unknown": "403 node_unknown",
		"other mesh": none, "self-signed": none, "controller": none,
	},
	"POST /v1/inventory": {
		"nobody": "403 refused", "token": "403 refused", "pending": "403 refused", "refused": "403 refused", "pending+": "403 refused",
		"admitted": "200", "enrolled": "200", "another": "200", "revoked": "403 node_revoked", "unknown": "403 node_unknown",
		"other mesh": none, "self-signed": none, "controller": none,
	},
	"GET /v1/content/{digest}": {
		"nobody": "403 refused", "token": "403 refused", "pending": "403 refused", "refused": "403 refused", "pending+": "403 refused",
		"admitted": "200", "enrolled": "200", "another": "403 refused", "revoked": "403 node_revoked", "unknown": "403 node_unknown",
		"other mesh": none, "self-signed": none, "controller": none,
	},
	"POST /v1/session": {
		"nobody": "403 refused", "token": "403 refused", "pending": "403 refused", "refused": "403 refused", "pending+": "403 refused",
		"admitted": "403 refused", "enrolled": "403 refused", "another": "403 refused", "revoked": "403 node_revoked", "unknown": "403 node_unknown",
		"other mesh": none, "self-signed": none, "controller": none,
	},
	"POST /v1/renew": {
		"nobody": "403 refused", "token": "403 refused", "pending": "403 refused", "refused": "403 refused", "pending+": "403 refused",
		"admitted": "200", "enrolled": "200", "another": "200", "revoked": "403 node_revoked", "unknown": "403 node_unknown",
		"other mesh": none, "self-signed": none, "controller": none,
	},
	"GET /v1/unowned": {
		"nobody": "403 refused", "token": "403 refused", "pending": "403 refused", "refused": "403 refused", "pending+": "403 refused",
		"admitted": "200", "enrolled": "200", "another": "200", "revoked": "403 node_revoked", "unknown": "403 node_unknown",
		"other mesh": none, "self-signed": none, "controller": none,
	},
	"POST /v1/leave": {
		"nobody": "403 refused", "token": "403 refused", "pending": "403 refused", "refused": "403 refused", "pending+": "403 refused",
		"admitted": "200", "enrolled": "200", "another": "200", "revoked": "403 node_revoked", "unknown": "403 node_unknown",
		"other mesh": none, "self-signed": none, "controller": none,
	},
	"/": {
		"nobody": "404 refused", "token": "404 refused", "pending": "404 refused", "refused": "404 refused", "pending+": "404 refused",
		"admitted": "404 refused", "enrolled": "404 refused", "another": "404 refused", "revoked": "404 refused", "unknown": "404 refused",
		"other mesh": none, "self-signed": none, "controller": none,
	},
}

// TestWhatEverybodyMayDo asks everything there is to ask as everybody there is. A
// route that is new is not in the table above, and fails.
func TestWhatEverybodyMayDo(t *testing.T) {
	for who, is := range callers {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t, func(s *Server) {
				s.office.Policy = admission.Policy{{Decision: admission.Refuse, Hostname: "refused"}}
			})
			c := is(p)
			if mayAsk["/"][who] == none { // it is the certificate, and nothing else about it
				bare := c
				bare.Node = &wiretest.Node{Address: c.Address, Mesh: c.Mesh, Pins: c.Pins}
				if got := p.answered(bare, "POST "+link.PathHello); got != "200" {
					t.Fatalf("without a certificate it is answered %q", got)
				}
			}
			for _, r := range p.table() {
				want, known := mayAsk[r.pattern][who]
				if !known {
					t.Errorf("%s: nobody has said what %q may do", r.pattern, who)
					continue
				}
				if got := p.answered(c, r.pattern); got != want {
					t.Errorf("%s: answered %q, want %q", r.pattern, got, want)
				}
			}
		})
	}
	routes := newPlane(t).table()
	for pattern, by := range mayAsk {
		if !slices.ContainsFunc(routes, func(r route) bool { return r.pattern == pattern }) {
			t.Errorf("%s: there is no such route", pattern)
		}
		if len(by) != len(callers) {
			t.Errorf("%s: said of %d callers of %d", pattern, len(by), len(callers))
		}
	}
}

// answered asks and returns what came, as mayAsk has it.
func (p *plane) answered(c caller, pattern string) string {
	p.t.Helper()
	conn, err := c.Dial(p.t.Context())
	if err != nil {
		return none
	}
	defer conn.Close()
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		method, path = "GET", "/v1/nodes"
	}
	path = strings.Replace(path, "{digest}", c.content, 1)
	if path == link.PathContent {
		path += "sha256:" + strings.Repeat("0", 64)
	}
	var body any
	header := map[string]string{}
	switch path {
	case link.PathHello:
		body = link.Hello{Protocol: link.Range{Min: 1, Max: 1}}
	case link.PathEnrol:
		body = c.req
	case link.PathAck:
		body = link.AckRequest{EnrolmentID: c.ack}
	case link.PathReports:
		body = link.Report{ID: wiretest.ID()}
	case link.PathInventory:
		body = profile.Inventory{}
	case link.PathSession: // no link is open
		body = link.SessionRequest{Session: "1-0123456789abcdef"}
	case link.PathRenew, link.PathLeave:
		body = struct{}{}
	}
	b, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	if path == link.PathEnrol && c.token != nil {
		if header, err = conn.Prove(*c.token, b); err != nil {
			p.t.Fatal(err)
		}
	}
	res, err := conn.Do(p.t.Context(), method, path, b, header)
	if err != nil {
		return none
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		return "200" // of a link, the body goes on
	}
	var a link.Answer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil || a.Sentence == "" {
		p.t.Errorf("%s: %d with %+v, %v", pattern, res.StatusCode, a, err)
	}
	return fmt.Sprintf("%d %s", res.StatusCode, a.Code)
}

// comes is a machine with a token that has asked nothing yet.
func (p *plane) comes(opts admission.TokenOptions, hostname string) caller {
	p.t.Helper()
	k := p.token(opts)
	n, req := p.host(k, hostname)
	return caller{Node: n, token: &k, req: req, ack: n.Enrolment}
}

// asks is one that has, and was answered so.
func (p *plane) asks(opts admission.TokenOptions, hostname string, want link.Code) caller {
	p.t.Helper()
	c := p.comes(opts, hostname)
	if a, err := c.Enrol(p.t.Context(), *c.token, c.req); err != nil || a.Code != want {
		p.t.Fatalf("%+v, %v", a, err)
	}
	return c
}

func (p *plane) enrolled(hostname string) caller {
	p.t.Helper()
	c := p.asks(admission.TokenOptions{}, hostname, "")
	if a, err := c.Ack(p.t.Context()); err != nil || a.Code != "" {
		p.t.Fatalf("%+v, %v", a, err)
	}
	return c
}

// certified has a certificate of the mesh for its key and the record it has, if it
// has one.
func (p *plane) certified(c caller) caller {
	p.t.Helper()
	err := p.office.Store.View(func(tx *state.Tx) error {
		e, err := tx.Enrolment(c.Enrolment)
		if err == nil && e != nil {
			c.ID = e.Node
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	der, err := p.office.Authority.Node(c.ID, c.Key.Public().(*ecdsa.PublicKey), start)
	if err != nil || c.Key.Curve != elliptic.P256() {
		p.t.Fatal(err)
	}
	c.Certificate = &tls.Certificate{Certificate: [][]byte{der, p.office.Authority.Chain()[0]}, PrivateKey: c.Key}
	return c
}

// contentOf declares a file for a node and returns the digest of its content.
func (p *plane) contentOf(n *wiretest.Node) string {
	p.t.Helper()
	d := put(p.t, p.content, "of "+n.Name)
	p.declare("m-"+n.Name, `{"schema":1,"name":"x","resources":[{"id":"f","type":"file","path":"/f","source":"`+d.String()+`"}]}`, "node="+n.Name)
	return d.String()
}
