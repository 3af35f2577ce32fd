package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Stage is how far an identity has come.
type Stage string

// The stages. An identity goes from each to the next; only Active is a node's.
const (
	// StageEnrolling: key and enrolment id are made, nothing was answered yet.
	StageEnrolling Stage = "enrolling"
	// StageCandidate: a certificate is there, the control plane does not know
	// yet that we have it.
	StageCandidate Stage = "candidate"
	// StageActive: this machine is a node.
	StageActive Stage = "active"
)

// maxIdentity bounds the file, in bytes.
const maxIdentity = 256 << 10

// An Identity is who a machine is in a mesh. Nothing that prints an Identity
// prints its private key; Save alone writes it.
type Identity struct {
	Stage Stage
	// EnrolmentID is 32 hex digits, made once.
	EnrolmentID string
	Mesh        string
	// NodeID and Name are empty while enrolling.
	NodeID, Name string
	// Certificate and Chain (mesh root last) are DER; empty while enrolling.
	Certificate []byte
	Chain       [][]byte
	// Pins are the keys of the mesh root, as link.Pin writes them.
	Pins []string
	// Addresses have worked, or came with the token; the best first.
	// Candidates were announced and have not worked yet.
	Addresses, Candidates []string
	// Epoch and Generation are those of the enrolment's answer: what came
	// later is in the store.
	Epoch, Generation uint64
	// Sessions are the values of the last sessions, newest first, link.MaxKept at most.
	Sessions []link.SessionValue
	// Revoked is the control plane's sentence when it took the credential away.
	// The machine may then enrol anew, with another key.
	Revoked string

	// A function, for the reason of link.Token's seed.
	key func() *ecdsa.PrivateKey
}

type identityFile struct {
	Stage       Stage    `json:"state"`
	EnrolmentID string   `json:"enrolment_id"`
	Mesh        string   `json:"mesh"`
	NodeID      string   `json:"node_id,omitempty"`
	Name        string   `json:"name,omitempty"`
	Key         []byte   `json:"key"` // PKCS #8, DER
	Certificate []byte   `json:"certificate,omitempty"`
	Chain       [][]byte `json:"chain,omitempty"`
	Pins        []string `json:"pins"`
	Addresses   []string `json:"addresses"`
	Candidates  []string `json:"candidate_addresses,omitempty"`
	Epoch       uint64   `json:"epoch,omitempty"`
	Generation  uint64   `json:"generation,omitempty"`
	Revoked     string   `json:"revoked,omitempty"`

	Sessions []link.SessionValue `json:"sessions,omitempty"`
}

// newIdentity makes key and enrolment id for the mesh of a token.
func newIdentity(t link.Token) (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the node's key: %w", err)
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails (Go 1.24)
	return &Identity{
		Stage: StageEnrolling, EnrolmentID: hex.EncodeToString(id[:]),
		Mesh: t.Mesh, Pins: t.Pins, Addresses: t.Addresses,
		key: func() *ecdsa.PrivateKey { return key },
	}, nil
}

// LoadIdentity reads the identity at path: nil and no error when there is
// none. A damaged one is an error that names the file; nothing is guessed.
func LoadIdentity(path string) (*Identity, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the identity: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxIdentity+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the identity: %w", err)
	}
	id, err := parseIdentity(b)
	if err != nil {
		return nil, fault.Failedf("cannot use the identity %q: it is damaged: %w", path, err).
			Hint("put it back from a backup, or remove it and enrol again with a new token")
	}
	return id, nil
}

var enrolmentID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// parseIdentity's errors never quote the file: it holds the key.
func parseIdentity(b []byte) (*Identity, error) {
	if len(b) > maxIdentity {
		return nil, fmt.Errorf("it is longer than %d bytes", maxIdentity)
	}
	var f identityFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, errors.New("it is not the JSON it should be")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(f.Key)
	if err != nil {
		return nil, errors.New("its key cannot be read")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("its key is not a P-256 key")
	}
	if !enrolmentID.MatchString(f.EnrolmentID) {
		return nil, errors.New("its enrolment id is not 32 hex digits")
	}
	if err := link.CheckID(f.Mesh); err != nil {
		return nil, fmt.Errorf("its mesh: %w", err)
	}
	if err := link.CheckAddresses(f.Addresses); err != nil {
		return nil, err
	}
	for _, v := range f.Sessions {
		if !v.Valid() || len(f.Sessions) > link.MaxKept {
			return nil, errors.New("its sessions are not as they should be")
		}
	}
	id := &Identity{
		Stage: f.Stage, EnrolmentID: f.EnrolmentID, Mesh: f.Mesh, NodeID: f.NodeID, Name: f.Name,
		Certificate: f.Certificate, Chain: f.Chain, Pins: f.Pins, Addresses: f.Addresses,
		Candidates: f.Candidates, Epoch: f.Epoch, Generation: f.Generation, Revoked: f.Revoked, Sessions: f.Sessions,
		key: func() *ecdsa.PrivateKey { return key },
	}
	switch f.Stage {
	case StageEnrolling:
	case StageCandidate, StageActive:
		if err := id.checkCertificate(); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("its state is unknown")
	}
	return id, nil
}

// checkCertificate says whether the certificate is for our key, our node and
// by our mesh root.
func (id *Identity) checkCertificate() error {
	var chain []*x509.Certificate
	for _, der := range append([][]byte{id.Certificate}, id.Chain...) {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return errors.New("its certificate cannot be read")
		}
		chain = append(chain, c)
	}
	if pub, ok := chain[0].PublicKey.(*ecdsa.PublicKey); !ok || !pub.Equal(&id.key().PublicKey) {
		return errors.New("its certificate is not for its key")
	}
	mesh, node, err := link.NodeOf(chain[0])
	if err != nil || mesh != id.Mesh || node != id.NodeID {
		return fmt.Errorf("its certificate is not that of node %q of mesh %q", id.NodeID, id.Mesh)
	}
	return link.VerifyChain(chain, id.Pins, x509.ExtKeyUsageClientAuth)
}

// Save makes the identity durable at path, 0600.
func (id *Identity) Save(path string) error {
	key, err := x509.MarshalPKCS8PrivateKey(id.key())
	if err != nil {
		return fmt.Errorf("cannot write the identity %q: %w", path, err)
	}
	b, err := json.MarshalIndent(identityFile{
		Stage: id.Stage, EnrolmentID: id.EnrolmentID, Mesh: id.Mesh, NodeID: id.NodeID, Name: id.Name,
		Key: key, Certificate: id.Certificate, Chain: id.Chain, Pins: id.Pins, Addresses: id.Addresses,
		Candidates: id.Candidates, Epoch: id.Epoch, Generation: id.Generation, Revoked: id.Revoked, Sessions: id.Sessions,
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the identity %q: %w", path, err)
	}
	if err := durable.WriteFile(path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot write the identity: %w", err)
	}
	return nil
}

// tlsCertificate is what the node shows on its link, or nil while enrolling.
func (id *Identity) tlsCertificate() *tls.Certificate {
	if id.Stage == StageEnrolling {
		return nil
	}
	return &tls.Certificate{
		Certificate: append([][]byte{id.Certificate}, id.Chain...),
		PrivateKey:  id.key(),
	}
}

// due says whether the certificate is to be renewed: two thirds of its life are
// over, or the clock is before it began.
func (id *Identity) due(now time.Time) bool {
	c, err := x509.ParseCertificate(id.Certificate)
	return err != nil || now.Before(c.NotBefore) || now.After(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore)*2/3))
}

// csr is the PKCS #10 request for the node's key.
func (id *Identity) csr() ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, id.key())
	if err != nil {
		return nil, fmt.Errorf("cannot ask for a certificate: %w", err)
	}
	return der, nil
}
