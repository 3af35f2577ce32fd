package client

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// A plane is just enough of a control plane, over real TLS on loopback, with a
// mesh root made by hand.
type plane struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	root *x509.Certificate
	// above is what leads from a root that is not the first to that, whose pin is oldest.
	above      [][]byte
	oldest     string
	from, to   time.Time
	serverTime time.Time
	server     *httptest.Server

	mu      sync.Mutex
	tokens  map[string]ed25519.PublicKey
	nodes   map[string]node // by enrolment id
	acked   map[string]bool
	seen    []link.EnrolRequest
	hellos  int
	reports []link.Report
	content map[string][]byte
	// refuse answers a path with a code instead.
	refuse map[string]link.Code
	// drop cuts the connection instead of giving the nth answer of a path.
	drop map[string]int
	// retry overrides the rule of a refusal.
	retry string
	// addresses is what an admitted node is told.
	addresses []string
	protocol  link.Range

	// streams has each GET /v1/link as it comes.
	streams chan *stream
	posted  chan string
	// kept has each session value that a node said it keeps.
	kept    chan link.SessionValue
	renewed int
	// refused has the path of each refusal.
	refused chan string
}

type node struct {
	key    string
	answer link.EnrolAnswer
}

// A stream is one GET /v1/link; the test sends on it and ends it.
type stream struct {
	node string
	// opening is what the node said.
	opening link.Opening
	out     chan link.Message
	end     chan struct{}
	// gone is closed when the handler has returned.
	gone chan struct{}
}

func (s *stream) send(t testing.TB, m link.Message) {
	t.Helper()
	select {
	case s.out <- m:
	case <-s.gone:
		t.Error("the stream has ended")
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

type planeOption func(*plane)

func inYear(y int) planeOption {
	return func(p *plane) {
		p.from = time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC)
		p.to, p.serverTime = p.from.AddDate(0, 3, 0), p.from.AddDate(0, 1, 0)
	}
}

func http1(p *plane) { p.server.EnableHTTP2 = false }

// sibling makes the plane another address of the same mesh.
func sibling(of *plane) planeOption {
	return func(p *plane) {
		p.key, p.root = of.key, of.root
		p.tokens, p.nodes, p.acked = of.tokens, of.nodes, of.acked
	}
}

func newPlane(t testing.TB, options ...planeOption) *plane {
	p := &plane{
		t: t, tokens: map[string]ed25519.PublicKey{}, nodes: map[string]node{}, acked: map[string]bool{},
		content: map[string][]byte{}, refuse: map[string]link.Code{}, drop: map[string]int{},
		protocol: link.Range{Min: 1, Max: 1},
		streams:  make(chan *stream, 16), posted: make(chan string, 64), kept: make(chan link.SessionValue, 64), refused: make(chan string, 64),
	}
	inYear(2026)(p)
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, o := range options {
		o(p)
	}
	if p.key == nil {
		p.key = newKey(t)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mesh root"}, NotBefore: p.from, NotAfter: p.to,
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		}
		p.root = p.create(template, template, &p.key.PublicKey)
	}
	serverKey := newKey(t)
	leaf := p.issue(link.ControllerURI("m1"), x509.ExtKeyUsageServerAuth, &serverKey.PublicKey)
	p.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: append([][]byte{leaf.Raw, p.root.Raw}, p.above...), PrivateKey: serverKey}},
		ClientAuth:   tls.RequestClientCert,
		MinVersion:   tls.VersionTLS13,
	}
	p.server.StartTLS()
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

func (p *plane) create(template, parent *x509.Certificate, pub *ecdsa.PublicKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, pub, p.key)
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *plane) issue(uri *url.URL, use x509.ExtKeyUsage, pub *ecdsa.PublicKey) *x509.Certificate {
	return p.create(&x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: p.from, NotAfter: p.to, URIs: []*url.URL{uri},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use},
	}, p.root, pub)
}

func (p *plane) address() string { return p.server.Listener.Addr().String() }

// token makes a token for these addresses, or for the plane's own.
func (p *plane) token(addresses ...string) link.Token {
	if len(addresses) == 0 {
		addresses = []string{p.address()}
	}
	tok, err := link.NewToken("m1", addresses, []string{link.Pin(p.root)}, p.to, "")
	if err != nil {
		p.t.Fatal(err)
	}
	p.tokens[tok.ID] = tok.PublicKey()
	return tok
}

func (p *plane) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (p *plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	code := p.refuse[r.URL.Path]
	dropped := p.drop[r.URL.Path]
	p.drop[r.URL.Path]--
	retry := p.retry
	p.mu.Unlock()
	if code != "" {
		a := code.Answer(p.serverTime, "")
		if retry != "" {
			a.Retry = retry
		}
		select {
		case p.refused <- r.URL.Path:
		default:
		}
		reply(w, code.Status(), a)
		return
	}
	var status int
	var answer any
	switch {
	case r.URL.Path == link.PathHello:
		p.set(func() { p.hellos++ })
		status, answer = 200, link.HelloAnswer{Answer: link.Answer{ServerTime: p.serverTime}, Mesh: "m1", Protocol: p.protocol, MaxBody: link.MaxEnrolBody}
	case r.URL.Path == link.PathEnrol:
		status, answer = p.enrol(r)
	default:
		id, ok := p.peer(r)
		if !ok {
			status, answer = 403, link.NodeUnknown.Answer(p.serverTime, "")
			break
		}
		if r.URL.Path == link.PathLink {
			p.link(w, r, id)
			return
		}
		if d, ok := strings.CutPrefix(r.URL.Path, link.PathContent); ok {
			p.mu.Lock()
			b, ok := p.content[d]
			p.mu.Unlock()
			if !ok {
				reply(w, 404, link.Refused.Answer(p.serverTime, "there is no such content"))
				return
			}
			_, _ = w.Write(b)
			return
		}
		status, answer = p.take(r, id)
	}
	if dropped > 0 {
		panic(http.ErrAbortHandler)
	}
	reply(w, status, answer)
}

// peer is the node a request comes from.
func (p *plane) peer(r *http.Request) (string, bool) {
	if len(r.TLS.PeerCertificates) == 0 || link.VerifyChain(r.TLS.PeerCertificates, []string{link.Pin(p.root), p.oldest}, x509.ExtKeyUsageClientAuth) != nil {
		return "", false
	}
	_, id, err := link.NodeOf(r.TLS.PeerCertificates[0])
	return id, err == nil
}

func (p *plane) enrol(r *http.Request) (int, any) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 400, link.Refused.Answer(p.serverTime, "")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pub, ok := p.tokens[r.Header.Get(link.HeaderToken)]
	if !ok {
		return 403, link.TokenUnknown.Answer(p.serverTime, "")
	}
	if err := link.VerifyProof(pub, *r.TLS, sha256.Sum256(body), r.Header.Get(link.HeaderProof)); err != nil {
		return 403, link.BadProof.Answer(p.serverTime, "")
	}
	var q link.EnrolRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return 400, link.Refused.Answer(p.serverTime, "")
	}
	csr, err := x509.ParseCertificateRequest(q.CSR)
	if err != nil || csr.CheckSignature() != nil {
		return 400, link.Refused.Answer(p.serverTime, "")
	}
	p.seen = append(p.seen, q)
	key := fmt.Sprintf("%x", csr.RawSubjectPublicKeyInfo)
	n, ok := p.nodes[q.EnrolmentID]
	if ok && n.key != key {
		return 409, link.EnrolmentConflict.Answer(p.serverTime, "")
	}
	if !ok {
		id := fmt.Sprintf("n%d", len(p.nodes)+1)
		n = node{key, link.EnrolAnswer{
			Answer: link.Answer{ServerTime: p.serverTime}, NodeID: id, Name: "web-" + id, Mesh: "m1",
			Certificate: p.issue(link.NodeURI("m1", id), x509.ExtKeyUsageClientAuth, csr.PublicKey.(*ecdsa.PublicKey)).Raw,
			Chain:       [][]byte{p.root.Raw}, Addresses: p.addresses, Epoch: 3, Generation: 1,
		}}
		p.nodes[q.EnrolmentID] = n
	}
	return 200, n.answer
}

// take is every POST of a node.
func (p *plane) take(r *http.Request, id string) (int, any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.URL.Path {
	case link.PathAck:
		p.acked[id] = true
	case link.PathSession:
		var q link.SessionRequest
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			return 400, link.Refused.Answer(p.serverTime, "")
		}
		p.kept <- q.Session
	case link.PathRenew:
		p.renewed++
		leaf := p.issue(link.NodeURI("m1", id), x509.ExtKeyUsageClientAuth, r.TLS.PeerCertificates[0].PublicKey.(*ecdsa.PublicKey))
		return 200, link.RenewAnswer{Answer: link.Answer{ServerTime: p.serverTime}, Certificate: leaf.Raw, Chain: append([][]byte{p.root.Raw}, p.above...)}
	case link.PathReports:
		var rep link.Report
		if err := json.NewDecoder(r.Body).Decode(&rep); err != nil {
			return 400, link.Refused.Answer(p.serverTime, "")
		}
		p.reports = append(p.reports, rep)
	}
	select {
	case p.posted <- r.URL.Path:
	default:
	}
	return 200, link.Answer{ServerTime: p.serverTime}
}

func (p *plane) link(w http.ResponseWriter, r *http.Request, id string) {
	opening, err := link.ParseOpening(r.Header)
	if err != nil {
		p.t.Error(err)
	}
	s := &stream{node: id, opening: opening, out: make(chan link.Message), end: make(chan struct{}), gone: make(chan struct{})}
	defer close(s.gone)
	messages, rc := link.NewWriter(w), http.NewResponseController(w)
	w.WriteHeader(200)
	_ = rc.Flush()
	p.streams <- s
	for {
		select {
		case m := <-s.out:
			if messages.Write(m) != nil || rc.Flush() != nil {
				return
			}
		case <-s.end:
			return
		case <-r.Context().Done():
			return
		}
	}
}
