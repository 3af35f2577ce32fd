package wire

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"net/http"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

const maxHello = 4 << 10

// hello says whom one speaks to.
func (s *Server) hello(w http.ResponseWriter, r *http.Request) {
	var h link.Hello
	err := s.read(w, r, maxHello, &h, byStranger(r), func() error { return admission.CheckProtocol(h.Protocol) })
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.answer(w, http.StatusOK, link.HelloAnswer{
		Answer: link.Answer{ServerTime: s.now()}, Mesh: s.office.Authority.Mesh(),
		Protocol: link.Range{Min: link.ProtocolMin, Max: link.ProtocolMax},
		Version:  version.Running(), MaxBody: link.MaxEnrolBody,
	})
}

// enrol admits, or not. The token and the form of the proof are looked at
// before the body is read.
func (s *Server) enrol(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get(link.HeaderToken)
	a, err := s.tryEnrol(w, r, token)
	if err != nil {
		s.refused(r, token, err)
		s.refuse(w, err)
		return
	}
	status := http.StatusOK
	if a.Code == link.Refused {
		s.refused(r, token, link.AnswerError(a.Answer))
	}
	if a.Code == "" {
		s.log.Info("node is admitted", "node", a.Name, "from", r.RemoteAddr, "token", token)
	} else {
		status = a.Code.Status()
		if wait, ok := link.ParseRetry(a.Retry); ok {
			w.Header().Set("Retry-After", fmt.Sprint(int(wait.Seconds())))
		}
	}
	s.answer(w, status, a)
}

func (s *Server) tryEnrol(w http.ResponseWriter, r *http.Request, token string) (link.EnrolAnswer, error) {
	var none link.EnrolAnswer
	proof := r.Header.Get(link.HeaderProof)
	if token == "" || proof == "" {
		return none, link.BadProof.Errorf("the request has no %s or no %s", link.HeaderToken, link.HeaderProof)
	}
	t, err := s.office.Token(token)
	if err != nil {
		return none, err
	}
	b, err := s.body(w, r, link.MaxEnrolBody, enrolTimeout, byStranger(r)...)
	if err != nil {
		return none, err
	}
	defer b.free()
	if err := link.VerifyProof(ed25519.PublicKey(t.PublicKey), *r.TLS, sha256.Sum256(b.bytes), proof); err != nil {
		return none, err
	}
	var req link.EnrolRequest
	if err := parse(b.bytes, &req); err != nil {
		return none, err
	}
	a, err := s.office.Enrol(token, req)
	if err == nil && t.Rejoin != "" && a.NodeID != "" {
		s.Links.Revoke(a.NodeID) // of the machine that had its key
	}
	return a, err
}

// ack hears that the node's credential is durable.
func (s *Server) ack(w http.ResponseWriter, r *http.Request, n *state.Node) {
	var a link.AckRequest
	err := s.read(w, r, maxHello, &a, []payer{byNode(n.ID)}, func() error { return s.office.Ack(n.ID, a.EnrolmentID) })
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.log.Info("node is enrolled", "node", n.Name)
	s.done(w)
}
