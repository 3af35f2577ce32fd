// Package link is what a node and its control plane say to each other: the
// token, the proof, the pin, and the messages. Both ends import it; neither
// end's behaviour is in it (link/client is the node's, controlplane the
// other's).
//
// Enrolment, step by step:
//
//	0  host        makes an enrolment id and the node's key, durable
//	1  host   ->   TLS 1.3 to an address of the token, root pinned by SPKI
//	2         ->   POST /v1/enrol/hello   <- mesh, server time, protocol range
//	3  host   ->   POST /v1/enrol         body: EnrolRequest; headers: token id, proof
//	4  controller  one transaction: token reserved, node record with profile
//	5  controller  only now decides
//	6         <-   EnrolAnswer
//	7  host        writes the credential as candidate, durable
//	8         ->   POST /v1/enrol/ack over the new credential; candidate becomes identity
//
// Afterwards the node holds GET /v1/link (JSON lines, down), which it opens by
// saying where it stands (Opening), posts to /v1/reports and /v1/inventory, and
// reads /v1/content/DIGEST. It says that it kept the value of a session to
// /v1/session, has its certificate renewed at /v1/renew, asks what it owned once
// at /v1/unowned, and says that it has left at /v1/leave.
package link

import (
	"encoding/json"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

// ProtocolMin and ProtocolMax are the protocol versions this program speaks.
const (
	ProtocolMin = 1
	ProtocolMax = 1
)

// The paths of the wire. Every POST takes one JSON object and is answered by
// one that begins with Answer: PathEnrol takes an EnrolRequest (EnrolAnswer),
// PathAck an AckRequest, PathReports one Report, PathInventory a Having,
// PathSession a SessionRequest, PathLeave a LeaveRequest (all five: Answer),
// PathRenew an empty object (RenewAnswer). GET PathUnowned is answered by an
// UnownedAnswer.
const (
	PathHello     = "/v1/enrol/hello"
	PathEnrol     = "/v1/enrol"
	PathAck       = "/v1/enrol/ack"
	PathLink      = "/v1/link"
	PathReports   = "/v1/reports"
	PathInventory = "/v1/inventory"
	PathSession   = "/v1/session"
	PathRenew     = "/v1/renew"
	PathUnowned   = "/v1/unowned"
	PathLeave     = "/v1/leave"
	PathContent   = "/v1/content/" // + digest
)

// The headers of POST /v1/enrol.
const (
	HeaderToken = "Nox-Token-Id"
	HeaderProof = "Nox-Proof" // base64url, unpadded
)

// HeaderName is on GET /v1/link: what the node is called, for a control plane that
// does not know it.
const HeaderName = "Nox-Node-Name"

// MaxEnrolBody bounds the body of POST /v1/enrol, in bytes: it carries the
// local declaration whole.
const MaxEnrolBody = 20 << 20

// MaxInline is the size up to which a declaration travels inside its message.
const MaxInline = 64 << 10

// HeartbeatInterval is how often the control plane says that it is there; a
// link on which nothing came for three of them is dead.
const HeartbeatInterval = 30 * time.Second

// Range is a range of protocol versions, both ends included.
type Range struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Answer is in every answer of the control plane.
type Answer struct {
	ServerTime time.Time `json:"server_time"`
	// Code is empty when all is well.
	Code Code `json:"code,omitempty"`
	// Retry is "never", "after N s" or "with another token".
	Retry    string `json:"retry,omitempty"`
	Sentence string `json:"sentence,omitempty"`
	// Remedy is what to do: one command or half sentence.
	Remedy string `json:"remedy,omitempty"`
}

// Hello asks whom one speaks to.
type Hello struct {
	Protocol Range  `json:"protocol"`
	Version  string `json:"version"`
}

// HelloAnswer says it.
type HelloAnswer struct {
	Answer
	Mesh     string `json:"mesh"`
	Protocol Range  `json:"protocol"`
	Version  string `json:"version"`
	// MaxBody bounds the enrolment's body, in bytes.
	MaxBody int64 `json:"max_body"`
}

// EnrolRequest is the body that the proof covers.
type EnrolRequest struct {
	// EnrolmentID is made once by the host, 32 hex digits; a retry uses it again.
	EnrolmentID string `json:"enrolment_id"`
	Protocol    int    `json:"protocol"`
	// CSR is a PKCS #10 request in DER, for the node's key; its subject is not
	// looked at.
	CSR       []byte            `json:"csr"`
	Profile   profile.Profile   `json:"profile"`
	Inventory profile.Inventory `json:"inventory"`
	// Declaration is the local declaration in force, whole, if there is one;
	// the control plane takes it over as a module of this node.
	Declaration json.RawMessage `json:"declaration,omitempty"`
}

// EnrolAnswer admits a node (200), or says that it is pending (202).
type EnrolAnswer struct {
	Answer
	NodeID string `json:"node_id,omitempty"`
	Name   string `json:"name,omitempty"`
	Mesh   string `json:"mesh,omitempty"`
	// Certificate is the node's, Chain what leads to the mesh root (root last);
	// DER.
	Certificate []byte   `json:"certificate,omitempty"`
	Chain       [][]byte `json:"chain,omitempty"`
	Addresses   []string `json:"addresses,omitempty"`
	Epoch       uint64   `json:"epoch,omitempty"`
	Generation  uint64   `json:"generation,omitempty"`
}

// AckRequest says that the credential is durable on the node.
type AckRequest struct {
	EnrolmentID string `json:"enrolment_id"`
}

// SessionRequest says that the value of this session is kept.
type SessionRequest struct {
	Session SessionValue `json:"session"`
}

// RenewAnswer is a new certificate for the node's key.
type RenewAnswer struct {
	Answer
	// Certificate and Chain are as in EnrolAnswer.
	Certificate []byte   `json:"certificate,omitempty"`
	Chain       [][]byte `json:"chain,omitempty"`
}

// UnownedAnswer is what this node owned or was to have, as far as the control plane
// was ever told, and was not heard to have removed. What of that it does not know of
// is unowned.
type UnownedAnswer struct {
	Answer
	// Keys are what it ever said it owns, without having said that it removed them.
	Keys []string `json:"keys"`
	// Declarations are of one resource each: what was declared for it and is not any
	// more, without its having said that it removed it. What a resource named beside
	// itself (after, restart_on) is left out.
	Declarations []json.RawMessage `json:"declarations"`
}

// LeaveRequest says that the node has left: it forgets its identity now.
type LeaveRequest struct {
	// Left are the keys of what it still owns and could not take away.
	Left []string `json:"left,omitempty"`
}

// Message is one line of GET /v1/link. Type says which member counts.
type Message struct {
	Type       MessageType `json:"type"`
	ServerTime time.Time   `json:"server_time"`
	// Declaration is with MessageDeclaration.
	Declaration *DeclarationMessage `json:"declaration,omitempty"`
	// Addresses is with MessageAddresses: where the control plane is to be found.
	Addresses []string `json:"addresses,omitempty"`
	// WindowSeconds is with MessageDrain: come back at a random moment within.
	WindowSeconds int `json:"window_seconds,omitempty"`
	// Sentence is with MessageRevoked: why.
	Sentence string `json:"sentence,omitempty"`
	// Session is with the first message: the value of this session.
	Session SessionValue `json:"session,omitempty"`
}

// MessageType is the kind of a Message. An unknown one is passed over.
type MessageType string

// The messages.
const (
	MessageDeclaration MessageType = "declaration"
	MessageHeartbeat   MessageType = "heartbeat"
	MessageDrain       MessageType = "drain"
	MessageRevoked     MessageType = "revoked"
	MessageAddresses   MessageType = "addresses"
	// MessageConfirm asks the node to say once more, at PathSession, which session
	// this is: another machine came with the same key.
	MessageConfirm MessageType = "confirm"
)

// DeclarationMessage is what the node shall be. Its order is (mesh, epoch,
// generation): mesh and epoch are here and never in the document.
type DeclarationMessage struct {
	Mesh       string `json:"mesh"`
	Epoch      uint64 `json:"epoch"`
	Generation uint64 `json:"generation"`
	Digest     string `json:"digest"`
	Size       int64  `json:"size"`
	// Document is the declaration itself up to MaxInline; else it is fetched by
	// Digest.
	Document []byte `json:"document,omitempty"`
	// Final: it is the last one, and declares nothing. The node removes what it owns,
	// or lets go of it when Leave is set, says so, and forgets its identity.
	Final bool `json:"final,omitempty"`
	Leave bool `json:"leave,omitempty"`
}

// Having is the body of POST /v1/inventory.
type Having struct {
	profile.Inventory
	// Profile counts where the control plane knows none: no later one replaces the
	// one that was decided on.
	Profile *profile.Profile `json:"profile,omitempty"`
}

// Report is what one reconcile did. Posting one twice is the same as once.
type Report struct {
	// ID is 32 hex digits, made by the host.
	ID string `json:"id"`
	// Source is "bundle", "file", "link" or "retire"; Mesh and Epoch are set with the
	// last two.
	Source      string    `json:"source"`
	Mesh        string    `json:"mesh,omitempty"`
	Epoch       uint64    `json:"epoch,omitempty"`
	Generation  uint64    `json:"generation"`
	Declaration string    `json:"declaration"`
	Trigger     string    `json:"trigger"`
	Started     time.Time `json:"started"`
	Finished    time.Time `json:"finished"`
	// Version is the one that runs; Installed is the one on disk, when it differs.
	Version   string           `json:"version"`
	Installed string           `json:"installed,omitempty"`
	Resources []ResourceReport `json:"resources"`
}

// ResourceReport is what became of one resource.
type ResourceReport struct {
	Key     string              `json:"key"`
	ID      string              `json:"id"`
	Outcome declaration.Outcome `json:"outcome"`
	// Error is with failed; Note is anything else worth knowing (what drifted,
	// what was waited for, what was kept aside).
	Error string `json:"error,omitempty"`
	Note  string `json:"note,omitempty"`
	// Since is the end of the first of the passes in a row that did not find it, or
	// make it, as declared; nil when it is. It is the host's clock, for people.
	Since *time.Time `json:"since,omitempty"`
}
