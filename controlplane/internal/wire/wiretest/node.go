// Package wiretest is a node for tests, written by hand from the description
// of the wire: it does what a host does, one message at a time, and what no
// host would do. It stores nothing and retries nothing.
package wiretest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

// A Node is a machine with a key; Certificate is set by Enrol.
type Node struct {
	Address, Mesh string
	Pins          []string
	Key           *ecdsa.PrivateKey
	Enrolment     string
	ID, Name      string
	Certificate   *tls.Certificate
	// HTTP1 leaves HTTP/2 out.
	HTTP1 bool
	// Opening is what Open says.
	Opening link.Opening
}

// New makes a node that will enrol with a token.
func New(t link.Token) (*Node, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return &Node{Address: t.Addresses[0], Mesh: t.Mesh, Pins: t.Pins, Key: key, Enrolment: ID()}, nil
}

// ID makes 32 hex digits.
func ID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Request is what the node asks when it enrols.
func (n *Node) Request(hostname string) (link.EnrolRequest, error) {
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, n.Key)
	return link.EnrolRequest{
		EnrolmentID: n.Enrolment, Protocol: link.ProtocolMax, CSR: csr,
		Profile:   profile.Profile{Architecture: "amd64", Init: "systemd", Hostname: hostname, Schema: 1},
		Inventory: profile.Inventory{Version: "1.0.0"},
	}, err
}

// A Conn is one TLS connection to the control plane.
type Conn struct {
	TLS    *tls.Conn
	client *http.Client
}

// Dial opens a connection, with the node's certificate if it has one.
func (n *Node) Dial(ctx context.Context) (*Conn, error) {
	cfg := link.ClientTLS(n.Mesh, n.Pins, n.Certificate)
	if n.HTTP1 {
		cfg.NextProtos = []string{"http/1.1"}
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.Address)
	if err != nil {
		return nil, err
	}
	// Small buffers, so that a peer that stops reading is soon noticed.
	_ = raw.(*net.TCPConn).SetReadBuffer(16 << 10)
	c := tls.Client(raw, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	used := make(chan struct{}, 1)
	tr := &http.Transport{
		ForceAttemptHTTP2: true,
		HTTP2:             &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 64 << 10},
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case used <- struct{}{}:
				return c, nil
			default:
				return nil, errors.New("the connection was closed")
			}
		},
	}
	return &Conn{TLS: c, client: &http.Client{Transport: tr}}, nil
}

// Close ends the connection.
func (c *Conn) Close() {
	c.client.CloseIdleConnections()
	_ = c.TLS.Close()
}

// Do sends one request and returns the response, whose body is open.
func (c *Conn) Do(ctx context.Context, method, path string, body []byte, header map[string]string) (*http.Response, error) {
	return c.Send(ctx, method, path, bytes.NewReader(body), header)
}

// Send is Do with a body that is read as it is sent.
func (c *Conn) Send(ctx context.Context, method, path string, body io.Reader, header map[string]string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "https://controller"+path, body)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	return c.client.Do(r)
}

// JSON sends one request and reads the answer into v.
func (c *Conn) JSON(ctx context.Context, method, path string, body []byte, header map[string]string, v any) (status int, err error) {
	res, err := c.Do(ctx, method, path, body, header)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return res.StatusCode, json.NewDecoder(res.Body).Decode(v)
}

// Prove makes the headers of an enrolment on this connection.
func (c *Conn) Prove(t link.Token, body []byte) (map[string]string, error) {
	proof, err := link.Prove(t, c.TLS.ConnectionState(), sha256.Sum256(body))
	return map[string]string{link.HeaderToken: t.ID, link.HeaderProof: proof}, err
}

// Enrol sends the request once and takes up the credential if there is one.
func (n *Node) Enrol(ctx context.Context, t link.Token, req link.EnrolRequest) (link.EnrolAnswer, error) {
	var a link.EnrolAnswer
	c, err := n.Dial(ctx)
	if err != nil {
		return a, err
	}
	defer c.Close()
	body, err := json.Marshal(req)
	if err != nil {
		return a, err
	}
	h, err := c.Prove(t, body)
	if err != nil {
		return a, err
	}
	if _, err := c.JSON(ctx, http.MethodPost, link.PathEnrol, body, h, &a); err != nil || a.Code != "" {
		return a, err
	}
	n.ID, n.Name = a.NodeID, a.Name
	n.Certificate = &tls.Certificate{Certificate: append([][]byte{a.Certificate}, a.Chain...), PrivateKey: n.Key}
	return a, nil
}

// Post sends v over a connection of its own.
func (n *Node) Post(ctx context.Context, path string, v any) (status int, a link.Answer, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return 0, a, err
	}
	c, err := n.Dial(ctx)
	if err != nil {
		return 0, a, err
	}
	defer c.Close()
	status, err = c.JSON(ctx, http.MethodPost, path, body, nil, &a)
	return status, a, err
}

// Ack says that the credential is durable.
func (n *Node) Ack(ctx context.Context) (link.Answer, error) {
	_, a, err := n.Post(ctx, link.PathAck, link.AckRequest{EnrolmentID: n.Enrolment})
	return a, err
}

// Get reads content; it returns at most 1 MiB of the body.
func (n *Node) Get(ctx context.Context, path string, header map[string]string) (status int, body []byte, err error) {
	c, err := n.Dial(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer c.Close()
	res, err := c.Do(ctx, http.MethodGet, path, nil, header)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return res.StatusCode, body, err
}

// A Session is an open link.
type Session struct {
	conn *Conn
	body io.ReadCloser
	*link.Reader
}

// Open opens the link.
func (n *Node) Open(ctx context.Context) (*Session, error) {
	c, err := n.Dial(ctx)
	if err != nil {
		return nil, err
	}
	said := http.Header{}
	n.Opening.Set(said)
	header := map[string]string{link.HeaderName: n.Name}
	for k := range said {
		header[k] = said.Get(k)
	}
	res, err := c.Do(ctx, http.MethodGet, link.PathLink, nil, header)
	if err == nil && res.StatusCode != http.StatusOK {
		var a link.Answer
		_ = json.NewDecoder(res.Body).Decode(&a)
		res.Body.Close()
		err = link.AnswerError(a)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return &Session{c, res.Body, link.NewReader(res.Body)}, nil
}

// Close ends the link.
func (s *Session) Close() {
	s.body.Close()
	s.conn.Close()
}

// Await returns the next message of a type, within a generous time.
func (s *Session) Await(t link.MessageType) (link.Message, error) {
	late := time.AfterFunc(20*time.Second, s.Close)
	defer late.Stop()
	for {
		m, err := s.Next()
		if err != nil || m.Type == t {
			return m, err
		}
	}
}
