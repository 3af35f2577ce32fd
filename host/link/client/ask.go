package client

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// unknown says whether the control plane itself turned the credential down.
func unknown(err error) bool {
	switch link.CodeOf(err) {
	case "", link.PinMismatch, link.Busy, link.StoreUnavailable:
		return false
	}
	return true
}

// ask is steps 1 to 7, on one connection.
func (e *enrolment) ask(ctx context.Context, address string) error {
	c := &conns{only: true}
	defer c.close()
	t := transport(link.ClientTLS(e.id.Mesh, e.id.Pins, nil), c)
	defer t.CloseIdleConnections()

	hello, err := json.Marshal(link.Hello{
		Protocol: link.Range{Min: link.ProtocolMin, Max: link.ProtocolMax}, Version: e.Version,
	})
	if err != nil {
		return err
	}
	var greeting helloAnswer
	cs, err := post(ctx, t, address, link.PathHello, nil, hello, &greeting)
	if err != nil {
		return err
	}
	if err := e.greeted(greeting.HelloAnswer); err != nil {
		return err
	}
	e.step(stepGreeted)

	proof, err := link.Prove(e.Token, *cs, sha256.Sum256(e.body))
	if err != nil {
		return &localError{err}
	}
	header := http.Header{}
	header.Set(link.HeaderToken, e.Token.ID)
	header.Set(link.HeaderProof, proof)
	var answer enrolAnswer
	if _, err := post(ctx, t, address, link.PathEnrol, header, e.body, &answer); err != nil {
		if !final(err) {
			e.perhapsKnown = true
		}
		return err
	}
	e.perhapsKnown = true
	e.step(stepAnswered)
	return e.take(answer.EnrolAnswer, address)
}

// greeted judges the answer of step 2.
func (e *enrolment) greeted(h link.HelloAnswer) error {
	switch {
	case h.Mesh != e.Token.Mesh:
		return link.PinMismatch.Errorf("cannot enrol in mesh %q: the control plane says it is of another", e.Token.Mesh)
	case link.ProtocolMax < h.Protocol.Min:
		return link.ProtocolTooOld.Errorf("cannot enrol: the control plane speaks protocol %d and later, this host %d", h.Protocol.Min, link.ProtocolMax)
	case link.ProtocolMin > h.Protocol.Max:
		return link.ProtocolTooNew.Errorf("cannot enrol: the control plane speaks protocol %d and earlier, this host %d", h.Protocol.Max, link.ProtocolMin)
	case h.MaxBody > 0 && int64(len(e.body)) > h.MaxBody:
		return &localError{fault.Refusedf("cannot enrol: what this machine has to say is %d bytes long, the control plane takes %d", len(e.body), h.MaxBody)}
	}
	// Noted, and nothing else: dates refuse nothing here, and the clock is not
	// ours to set.
	if skew := e.Clock.Now().Sub(h.ServerTime); skew.Abs() > 5*time.Minute {
		e.Log.Warn("the clock of this machine is not the control plane's", "differs", skew.Round(time.Second))
	}
	return nil
}

// take is step 7: what was answered is checked and made durable.
func (e *enrolment) take(a link.EnrolAnswer, address string) error {
	id := *e.id
	id.Stage = StageCandidate
	id.NodeID, id.Name, id.Epoch, id.Generation = a.NodeID, a.Name, a.Epoch, a.Generation
	id.Certificate, id.Chain = a.Certificate, a.Chain
	if a.Mesh != id.Mesh || link.CheckID(a.NodeID) != nil || a.Name == "" || len(a.Name) > 253 {
		return errors.New("cannot take the answer: it does not name this mesh and a node")
	}
	if err := id.checkCertificate(); err != nil {
		return fmt.Errorf("cannot take the answer: %w", err)
	}
	id.Addresses = union([]string{address}, e.right(e.Token.Addresses))
	id.Candidates = nil
	if len(a.Addresses) > 0 {
		if err := link.CheckAddresses(a.Addresses); err != nil {
			return fmt.Errorf("cannot take the answer: %w", err)
		}
		id.Candidates = without(a.Addresses, id.Addresses)
	}
	if err := id.Save(e.Path); err != nil {
		return &localError{err}
	}
	e.id = &id
	e.step(stepCandidate)
	return nil
}

// right leaves out the addresses where somebody else answered.
func (e *enrolment) right(addresses []string) []string {
	var out []string
	for _, a := range addresses {
		if e.wrong[a] == nil {
			out = append(out, a)
		}
	}
	return out
}

// acknowledge is step 8, over the new credential.
func acknowledge(ctx context.Context, id *Identity, address string) error {
	body, err := json.Marshal(link.AckRequest{EnrolmentID: id.EnrolmentID})
	if err != nil {
		return err
	}
	c := &conns{only: true}
	defer c.close()
	t := transport(link.ClientTLS(id.Mesh, id.Pins, id.tlsCertificate()), c)
	defer t.CloseIdleConnections()
	_, err = post(ctx, t, address, link.PathAck, nil, body, &plainAnswer{})
	return err
}
