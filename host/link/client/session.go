package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// A session is one connection to one address, from GET /v1/link to its end.
// Everything it started has ended when close returns, so a late end can touch
// nothing of the session after it.
type session struct {
	client  *Client
	id      *Identity
	address string

	ctx    context.Context
	cancel context.CancelCauseFunc
	conns  *conns
	http   *http.Transport
	// silence ends the session when nothing came for three heartbeats.
	silence *time.Timer
	body    io.ReadCloser
	// uplink sends reports and inventory; asides are what is asked beside that.
	uplink, asides sync.WaitGroup
	// kept: the value of this session is durable here.
	kept bool
}

var (
	errSilent = errors.New("nothing came from the control plane for three heartbeats")
	errEnded  = errors.New("the control plane ended the session")
)

// errRevoked: the control plane took the credentials away.
type errRevoked struct{ sentence string }

func (e *errRevoked) Error() string { return e.sentence }

func newSession(ctx context.Context, c *Client, id *Identity, address string) *session {
	s := &session{client: c, id: id, address: address, conns: &conns{}}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.http = transport(link.ClientTLS(id.Mesh, id.Pins, id.tlsCertificate()), s.conns)
	return s
}

func (s *session) patience() time.Duration { return 3 * s.client.cfg.Heartbeat }

// open returns nil when the control plane has begun to answer GET /v1/link.
func (s *session) open() error {
	if s.id.Stage == StageCandidate {
		// A crash came before step 8 of the enrolment.
		if err := acknowledge(s.ctx, s.id, s.address); err != nil {
			return err
		}
		s.id.Stage = StageActive
		if err := s.id.Save(s.client.cfg.Path); err != nil {
			s.id.Stage = StageCandidate
			return err
		}
	}
	s.silence = time.AfterFunc(s.patience(), func() { s.cancel(errSilent) })
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "https://"+s.address+link.PathLink, nil)
	if err != nil {
		return err
	}
	link.Opening{Sessions: s.id.Sessions, Have: s.client.cfg.Have()}.Set(req.Header)
	req.Header.Set(link.HeaderName, s.id.Name)
	resp, err := s.http.RoundTrip(req)
	if err != nil {
		return s.cause(err)
	}
	s.body = resp.Body
	if resp.StatusCode != http.StatusOK {
		if err := readAnswer(resp, &plainAnswer{}); err != nil {
			return err
		}
		return fmt.Errorf("the answer is %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	learned := resp.TLS != nil && s.id.learn(resp.TLS.PeerCertificates)
	if s.id.worked(s.address) || learned {
		s.save()
	}
	s.uplink.Go(s.send)
	return nil
}

// close ends everything the session started, and waits for it.
func (s *session) close(err error) {
	s.cancel(err)
	if s.silence != nil {
		s.silence.Stop()
	}
	if s.body != nil {
		_ = s.body.Close()
	}
	s.conns.close()
	s.http.CloseIdleConnections()
	s.uplink.Wait()
	s.asides.Wait()
}

// cause is why the session ended, where that is known better than err.
func (s *session) cause(err error) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if err == io.EOF {
		return errEnded
	}
	return err
}

// read takes messages until the session ends; the error is never nil.
func (s *session) read() error {
	messages := link.NewReader(s.body)
	for {
		s.silence.Reset(s.patience())
		m, err := messages.Next()
		s.silence.Stop()
		if err != nil {
			return s.cause(err)
		}
		if err := s.take(m); err != nil {
			return s.cause(err)
		}
	}
}

// take acts on one message; an error ends the session.
func (s *session) take(m link.Message) error {
	if m.Session != "" {
		s.keep(m.Session)
	}
	s.renewWhenDue()
	switch m.Type {
	case link.MessageDeclaration:
		return s.declaration(*m.Declaration)
	case link.MessageDrain:
		return &errDrain{min(time.Duration(min(m.WindowSeconds, 1<<20))*time.Second, link.MaxRetry)}
	case link.MessageRevoked:
		sentence := cli.OneLine(m.Sentence)
		if sentence == "" {
			sentence = link.NodeRevoked.Sentence()
		}
		return &errRevoked{sentence}
	case link.MessageAddresses:
		if s.id.announced(m.Addresses) {
			s.save()
		}
	case link.MessageConfirm:
		s.confirm()
	}
	// A heartbeat says nothing more, and what is unknown is passed over.
	return nil
}

func (s *session) save() bool {
	err := s.id.Save(s.client.cfg.Path)
	if err != nil {
		s.client.cfg.Log.Warn("what changed in the identity is not kept", "cause", err)
	}
	return err == nil
}

// declaration checks what came, fetches what did not, and hands it over.
func (s *session) declaration(m link.DeclarationMessage) error {
	if m.Mesh != s.id.Mesh {
		return fmt.Errorf("cannot take a declaration of mesh %q: this node is of mesh %q", m.Mesh, s.id.Mesh)
	}
	if m.Document == nil {
		doc, err := s.document(m)
		if err != nil {
			return fmt.Errorf("cannot fetch a declaration: %w", err)
		}
		m.Document = doc
	}
	if err := m.Check(m.Document); err != nil {
		return fmt.Errorf("cannot take a declaration: %w", err)
	}
	if err := s.client.cfg.Handler.Declaration(s.ctx, m); err != nil {
		s.client.cfg.Log.Warn("a declaration is not taken",
			"epoch", m.Epoch, "generation", m.Generation, "digest", m.Digest, "cause", err)
	}
	return nil
}

// document fetches a declaration that was too long for its message.
func (s *session) document(m link.DeclarationMessage) ([]byte, error) {
	ctx, cancel := context.WithTimeout(s.ctx, callTimeout+transferTime(int(m.Size)))
	defer cancel()
	r, err := s.content(ctx, digest.Digest(m.Digest))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, m.Size+1))
}
