package fleet

import (
	"bufio"
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
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

// A Node is one machine.
type Node struct {
	// Address is where the control plane is, Source the machine's own address.
	Address  string
	Source   netip.Addr
	Hostname string
	// Enrolment, and the key, are made by New; ID, Name and the credential by the
	// answer.
	Enrolment, ID, Name string
	// HTTP1 leaves HTTP/2 out.
	HTTP1 bool
	// Heard is told each message of the link, Changed that the link is up (nil) or
	// why it is down.
	Heard   func(*Node, link.Message)
	Changed func(*Node, error)

	token link.Token
	key   *ecdsa.PrivateKey
	cert  *tls.Certificate
	acked bool
	conn  atomic.Pointer[conn]
}

// New makes the machine of number i, which will enrol with a token.
func New(t link.Token, i int) (*Node, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return &Node{
		Address: t.Addresses[0], Source: Source(i), Hostname: fmt.Sprintf("node-%d", i), Enrolment: id(), token: t, key: key,
	}, err
}

func id() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// A conn is one connection to the control plane.
type conn struct {
	tls *tls.Conn
	tr  *http.Transport
}

const dialTimeout = 15 * time.Second

// dial opens a connection, with the credential if there is one.
func (n *Node) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	d := net.Dialer{}
	if n.Source.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(n.Source, 0))
	}
	raw, err := d.DialContext(ctx, "tcp", n.Address)
	if err != nil {
		return nil, err
	}
	cfg := link.ClientTLS(n.token.Mesh, n.token.Pins, n.cert)
	if n.HTTP1 {
		cfg.NextProtos = []string{"http/1.1"}
	}
	c := tls.Client(raw, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	used := make(chan struct{}, 1)
	return &conn{c, &http.Transport{
		ForceAttemptHTTP2: true,
		MaxConnsPerHost:   1,
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case used <- struct{}{}:
				return c, nil
			default:
				return nil, errors.New("the connection was closed")
			}
		},
	}}, nil
}

func (c *conn) close() {
	_ = c.tls.NetConn().Close()
	c.tr.CloseIdleConnections()
}

// Protocol is what the control plane agrees to.
func (n *Node) Protocol(ctx context.Context) (string, error) {
	c, err := n.dial(ctx)
	if err != nil {
		return "", err
	}
	defer c.close()
	return c.tls.ConnectionState().NegotiatedProtocol, nil
}

const answerTimeout = 60 * time.Second

// post sends one request and reads the answer into v; a refusal is an error.
func (c *conn) post(ctx context.Context, path string, body []byte, header http.Header, v any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://controller"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if header != nil {
		r.Header = header
	}
	res, err := c.tr.RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return err
	}
	return answered(b, v)
}

// answered reads an answer.
func answered(b []byte, v any) error {
	var a link.Answer
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	if err := link.AnswerError(a); err != nil || v == nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// request is what the machine asks when it enrols.
func (n *Node) request() ([]byte, error) {
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, n.key)
	if err != nil {
		return nil, err
	}
	return json.Marshal(link.EnrolRequest{
		EnrolmentID: n.Enrolment, Protocol: link.ProtocolMax, CSR: csr,
		Profile: profile.Profile{
			Architecture: "x86_64", Kernel: "6.12.0", Distribution: "arch", Init: "systemd", PackageManager: "pacman",
			Virtualisation: "kvm", Container: "none", Hostname: n.Hostname, MachineID: n.Enrolment, MemoryBytes: 4 << 30, CPUs: 2,
			Schema: declaration.Schema,
		},
		Inventory: profile.Inventory{Version: "1.0.0"},
	})
}

// Enrol says hello and asks once, on a connection of its own. What it is called
// again for, it asks with the same key and the same enrolment id.
func (n *Node) Enrol(ctx context.Context) error {
	c, err := n.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return n.enrol(ctx, c, true)
}

func (n *Node) enrol(ctx context.Context, c *conn, greet bool) error {
	if greet {
		hello, err := json.Marshal(link.Hello{Protocol: link.Range{Min: link.ProtocolMin, Max: link.ProtocolMax}, Version: "1.0.0"})
		if err == nil {
			err = c.post(ctx, link.PathHello, hello, nil, nil)
		}
		if err != nil {
			return err
		}
	}
	body, err := n.request()
	if err != nil {
		return err
	}
	proof, err := link.Prove(n.token, c.tls.ConnectionState(), sha256.Sum256(body))
	if err != nil {
		return err
	}
	header := http.Header{}
	header.Set(link.HeaderToken, n.token.ID)
	header.Set(link.HeaderProof, proof)
	var a link.EnrolAnswer
	if err := c.post(ctx, link.PathEnrol, body, header, &a); err != nil {
		return err
	}
	n.ID, n.Name = a.NodeID, a.Name
	n.cert = &tls.Certificate{Certificate: append([][]byte{a.Certificate}, a.Chain...), PrivateKey: n.key}
	return nil
}

// Ack says, on a connection of its own, that the credential is durable.
func (n *Node) Ack(ctx context.Context) error {
	c, err := n.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return n.ack(ctx, c)
}

func (n *Node) ack(ctx context.Context, c *conn) error {
	body, err := json.Marshal(link.AckRequest{EnrolmentID: n.Enrolment})
	if err == nil {
		err = c.post(ctx, link.PathAck, body, nil, nil)
	}
	n.acked = err == nil
	return err
}

// Join enrols to the end, as often as it takes, and returns how often it tried.
// The error is a refusal for good, or that of ctx.
func (n *Node) Join(ctx context.Context) (tries int, err error) {
	var b backoff
	for {
		tries++
		if n.cert == nil {
			err = n.Enrol(ctx)
		}
		if err == nil {
			err = n.Ack(ctx)
		}
		if err == nil {
			return tries, nil
		}
		wait := b.next()
		asked, again := link.ParseRetry(link.RetryOf(err))
		if link.CodeOf(err) != "" && !again {
			return tries, err
		}
		if sleep(ctx, wait+asked) != nil {
			return tries, err
		}
		err = nil
	}
}

// Hold holds one session to its end, and returns why it ended; it is never nil.
func (n *Node) Hold(ctx context.Context) error {
	c, err := n.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	defer context.AfterFunc(ctx, c.close)()
	if !n.acked {
		if err := n.ack(ctx, c); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://controller"+link.PathLink, nil)
	if err != nil {
		return err
	}
	res, err := c.tr.RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		if err := answered(b, nil); err != nil {
			return err
		}
		return fmt.Errorf("the answer is %s", res.Status)
	}
	n.conn.Store(c)
	n.changed(nil)
	err = n.read(res.Body)
	n.changed(err)
	return err
}

func (n *Node) changed(err error) {
	if n.Changed != nil {
		n.Changed(n, err)
	}
}

// ended is why a session ended when the control plane said it.
type ended struct{ link.Message }

func (e *ended) Error() string { return "the control plane said " + string(e.Type) }

// read takes messages until the session ends. (link.Reader has room for the
// longest line at once; ten thousand of them would be what is measured.)
func (n *Node) read(from io.Reader) error {
	lines := bufio.NewReaderSize(from, 512)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		var m link.Message
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		if n.Heard != nil {
			n.Heard(n, m)
		}
		switch m.Type {
		case link.MessageDrain, link.MessageRevoked:
			return &ended{m}
		}
	}
}

// Stay holds the link for ever: until ctx ends or the node is revoked.
func (n *Node) Stay(ctx context.Context) error {
	var b backoff
	for {
		up := time.Now()
		err := n.Hold(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if link.CodeOf(err) == link.NodeRevoked {
			return err
		}
		if time.Since(up) > link.HeartbeatInterval {
			b = backoff{}
		}
		var said *ended
		wait := b.next
		if errors.As(err, &said) {
			if said.Type == link.MessageRevoked {
				return err
			}
			wait = func() time.Duration { return jitter(time.Duration(said.WindowSeconds) * time.Second) }
		}
		asked, _ := link.ParseRetry(link.RetryOf(err))
		if sleep(ctx, wait()+asked) != nil {
			return ctx.Err()
		}
	}
}

// Report posts a report over the link that stands: nothing but a generation.
func (n *Node) Report(ctx context.Context, m link.DeclarationMessage) error {
	c := n.conn.Load()
	if c == nil {
		return errors.New("there is no link yet")
	}
	now := time.Now().UTC()
	body, err := json.Marshal(link.Report{
		ID: id(), Source: "link", Mesh: m.Mesh, Epoch: m.Epoch, Generation: m.Generation, Declaration: m.Digest,
		Trigger: "declaration", Started: now, Finished: now, Version: "1.0.0", Resources: []link.ResourceReport{},
	})
	if err != nil {
		return err
	}
	return c.post(ctx, link.PathReports, body, nil, nil)
}

// EnrolTogether enrols machines over one connection, so many requests at a time,
// and leaves it at that: they are admitted and have not said that they keep their
// credential. It is how a large state is made soon; no host does so.
func EnrolTogether(ctx context.Context, nodes []*Node, most int) error {
	c, err := nodes[0].dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	_, err = Each(nodes, most, func(n *Node) error { return n.enrol(ctx, c, false) })
	return err
}
