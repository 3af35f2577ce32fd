package client

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// A CONNECT proxy gives a tunnel; the proof holds through it.
func TestProofHoldsThroughAProxy(t *testing.T) {
	p := newPlane(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			t.Errorf("%s through the proxy", r.Method)
			return
		}
		up, err := net.Dial("tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		down, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(down, "HTTP/1.1 200 OK\r\n\r\n")
		done := make(chan struct{})
		go func() { defer close(done); _, _ = up.(*net.TCPConn).ReadFrom(down); up.Close() }()
		_, _ = down.(*net.TCPConn).ReadFrom(up)
		down.Close()
		<-done
	}))
	defer proxy.Close()
	u, _ := url.Parse(proxy.URL)
	c := &conns{only: true}
	defer c.close()
	tok := p.token()
	tr := transport(link.ClientTLS("m1", tok.Pins, nil), c)
	tr.Proxy = http.ProxyURL(u)
	var hello helloAnswer
	cs, err := post(t.Context(), tr, p.address(), link.PathHello, nil, []byte("{}"), &hello)
	if err != nil || hello.Mesh != "m1" {
		t.Fatal(hello, err)
	}
	body := []byte("no request")
	proof, err := link.Prove(tok, *cs, sha256.Sum256(body))
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	h.Set(link.HeaderToken, tok.ID)
	h.Set(link.HeaderProof, proof)
	_, err = post(t.Context(), tr, p.address(), link.PathEnrol, h, body, &enrolAnswer{})
	if link.CodeOf(err) != link.Refused {
		t.Errorf("got %v, want the refusal that comes after the proof was accepted", err)
	}
}
