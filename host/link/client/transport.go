package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 15 * time.Second
	// answerTimeout is how long the control plane may think about a request.
	answerTimeout = 30 * time.Second
	// callTimeout bounds a small request and its answer, in all.
	callTimeout = 60 * time.Second
	// maxAnswer bounds a JSON answer, in bytes.
	maxAnswer = 1 << 20
)

// conns are the connections of one transport, so that its end is the end of
// them all, idle or not.
type conns struct {
	mu     sync.Mutex
	open   map[*conn]bool
	dialed bool
	closed bool
	// only refuses a second connection: what was said on the first would not
	// hold on it.
	only bool
}

// conn takes itself out of its set when it is closed.
type conn struct {
	net.Conn
	set *conns
}

var errSecondConnection = errors.New("the connection was closed between two requests")

func (c *conns) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	refused := c.closed || c.only && c.dialed
	c.dialed = true
	c.mu.Unlock()
	if refused {
		return nil, errSecondConnection
	}
	d := net.Dialer{Timeout: dialTimeout}
	raw, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = raw.Close()
		return nil, errSecondConnection
	}
	if c.open == nil {
		c.open = map[*conn]bool{}
	}
	n := &conn{Conn: raw, set: c}
	c.open[n] = true
	return n, nil
}

// Close closes the connection.
func (n *conn) Close() error {
	n.set.mu.Lock()
	delete(n.set.open, n)
	n.set.mu.Unlock()
	return n.Conn.Close()
}

func (c *conns) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for n := range c.open {
		_ = n.Conn.Close()
	}
	c.open = nil
}

// transport is HTTP to one control plane. HTTP/2 where the server has it; a
// CONNECT proxy where the environment names one.
func transport(cfg *tls.Config, c *conns) *http.Transport {
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            c.dial,
		TLSClientConfig:        cfg,
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  answerTimeout,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		IdleConnTimeout:        90 * time.Second,
		// HTTP/1.1 needs one for the stream and some beside it.
		MaxConnsPerHost: 4,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:  30 * time.Second,
			PingTimeout:      15 * time.Second,
			WriteByteTimeout: 30 * time.Second,
		},
	}
	if c.only {
		t.MaxConnsPerHost = 1
	}
	return t
}

// answerer is an answer that begins with link.Answer.
type answerer interface{ answer() link.Answer }

type (
	plainAnswer struct{ link.Answer }
	helloAnswer struct{ link.HelloAnswer }
	enrolAnswer struct{ link.EnrolAnswer }
)

func (a *plainAnswer) answer() link.Answer { return a.Answer }
func (a *helloAnswer) answer() link.Answer { return a.HelloAnswer.Answer }
func (a *enrolAnswer) answer() link.Answer { return a.EnrolAnswer.Answer }

// post sends body as JSON and reads the answer into out. A refusal is the
// error of link.AnswerError; the state of the connection comes with an answer
// of any kind. It follows no redirect.
func post(ctx context.Context, rt http.RoundTripper, address, path string, header http.Header, body []byte, out answerer) (*tls.ConnectionState, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout+transferTime(len(body)))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return resp.TLS, readAnswer(resp, out)
}

// transferTime is how long n bytes may take on a line of 64 kB/s.
func transferTime(n int) time.Duration { return time.Duration(n>>16) * time.Second }

// readAnswer reads the JSON of an answer of any status.
func readAnswer(resp *http.Response, out answerer) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	if len(b) > maxAnswer {
		return fmt.Errorf("cannot read the answer: it is longer than %d bytes", maxAnswer)
	}
	good := resp.StatusCode >= 200 && resp.StatusCode < 300
	if err := json.Unmarshal(b, out); err != nil {
		if !good {
			// A proxy's page, most likely.
			return fmt.Errorf("the answer is %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
		}
		return errors.New("cannot read the answer: it is not the JSON it should be")
	}
	a := out.answer()
	if resp.StatusCode == http.StatusTooManyRequests && a.Code == "" {
		a.Code = link.Busy
	}
	if after := resp.Header.Get("Retry-After"); a.Retry == "" && after != "" {
		if _, ok := link.ParseRetry("after " + after + " s"); ok {
			a.Retry = "after " + after + " s"
		}
	}
	if err := link.AnswerError(a); err != nil {
		return err
	}
	if !good {
		return fmt.Errorf("the answer is %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return nil
}
