package state

import (
	"encoding/json"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/ca"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

// A Mesh is who this control plane is. It is made once.
type Mesh struct {
	// ID is 32 hex digits.
	ID string `json:"id"`
	// Epoch is raised by each restore; it orders declarations before their
	// generation does.
	Epoch uint64 `json:"epoch"`
	// RootKey (PKCS #8, DER) and Root (X.509, DER) are the mesh root.
	RootKey []byte `json:"root_key"`
	Root    []byte `json:"root"`
	// Before are the roots that were before it, the newest first.
	Before  []ca.Before `json:"before,omitempty"`
	Created time.Time   `json:"created"`
	// Restored is the last restore, nil when there was none.
	Restored *Restored `json:"restored,omitempty"`
}

// Restored is what a restore was made from.
type Restored struct {
	// Backup is when the backup was made, Epoch the one it had.
	Backup time.Time `json:"backup"`
	Epoch  uint64    `json:"epoch"`
	At     time.Time `json:"at"`
}

// A Token is an enrolment token without its secret: the public half of the key
// whose seed the token carries.
type Token struct {
	ID        string    `json:"id"`
	PublicKey []byte    `json:"public_key"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"`
	// Uses is how many nodes it may enrol, Taken how many hold a place of it:
	// reserved or used up.
	Uses  int `json:"uses"`
	Taken int `json:"taken"`
	// Name is the pattern the node's name is bound to, or "".
	Name    string   `json:"name,omitempty"`
	Tags    []string `json:"tags,omitempty"`
	Pending bool     `json:"pending,omitempty"`
	// Rejoin is the id of the node that a machine becomes with it, or "".
	Rejoin  string    `json:"rejoin,omitempty"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// An Enrolment is one host's attempt to become a node. Its id was made by the
// host and comes back with each retry.
type Enrolment struct {
	ID    string `json:"id"`
	Token string `json:"token"`
	Node  string `json:"node"`
	// Hostname is what the host said it is called, for `token list`.
	Hostname string    `json:"hostname,omitempty"`
	At       time.Time `json:"at"`
	// Acked is when the host said that its credential is durable.
	Acked time.Time `json:"acked,omitzero"`
	// Freed says that it holds no place of the token any more.
	Freed bool `json:"freed,omitempty"`
}

// NodeState is where a node is in its life.
type NodeState string

// The states of a node:
//
//	new --(the token, a rule)--> admitted --ack--> enrolled
//	 |----(the token, a rule)--> pending --approve--> admitted
//	 `----(a rule)-------------> refused
//	pending --refuse--> refused --(approve)--> pending, approved --(asks again)--> admitted
//	                    refused --(asks again, and nothing refuses it)--> as if new
//	admitted, enrolled --retire--> retiring --leave--> retired
//	   any --leave--> retired
//	 orphan --approve--> enrolled, held --approve--> enrolled
//	   any but refused --revoke--> revoked
//
// Only the newest of the refused are kept; one that is gone and asks again is new. An
// orphan is no node yet (Orphan). One that is held is a node in every way but that
// nothing is declared to it.
const (
	// Pending waits for a person.
	Pending NodeState = "pending"
	// Admitted has a certificate, and has not said yet that it keeps it.
	Admitted NodeState = "admitted"
	// Enrolled uses its certificate.
	Enrolled NodeState = "enrolled"
	// Retiring is to take away what it owns, and to leave.
	Retiring NodeState = "retiring"
	// Retired has left by itself. Its name and key stay taken.
	Retired NodeState = "retired"
	// Refused was turned down by a rule or a person, and was never a node.
	Refused NodeState = "refused"
	// Revoked may do nothing any more. Its name and key stay taken.
	Revoked NodeState = "revoked"
)

// A Node is a machine that is, or asked to be, in the mesh.
type Node struct {
	// ID is 32 hex digits, made here.
	ID string `json:"id"`
	// Name is given at admission and is empty before.
	Name string `json:"name,omitempty"`
	// Key is the identity: the hex SHA-256 of the public key (SPKI).
	Key string `json:"key"`
	// PublicKey is the SPKI, Certificate the X.509 certificate, both DER.
	PublicKey   []byte `json:"public_key"`
	Certificate []byte `json:"certificate,omitempty"`
	Enrolment   string `json:"enrolment"`
	// Ended are keys that it had before, as far as they are kept: who shows one is told
	// that it ended, and is no orphan.
	Ended    []string  `json:"ended,omitempty"`
	Tags     []string  `json:"tags,omitempty"`
	State    NodeState `json:"state"`
	Decision Decision  `json:"decision"`
	// Approval is that of one that was refused, until its machine asks again.
	Approval *Approval `json:"approval,omitempty"`
	// Profile is the one that was decided on. It is a claim, and no later claim
	// replaces it without a person.
	Profile profile.Profile `json:"profile"`
	Wanted  Wanted          `json:"wanted"`
	// Conflict says why the composition of its modules cannot be sent; Wanted is
	// then the last one that could.
	Conflict string  `json:"conflict,omitempty"`
	Applied  Applied `json:"applied"`
	// Hold, if there is one, keeps anything new from the node.
	Hold *Hold `json:"hold,omitempty"`
	// Leave: a node that is retiring lets go of what it owns instead of removing it.
	Leave bool `json:"leave,omitempty"`
}

// Gone says whether the node may do nothing any more.
func (n *Node) Gone() bool { return n.State == Revoked || n.State == Retired }

// End keeps a key that is the node's no more.
func (n *Node) End(key string) {
	const kept = 64
	n.Ended = append([]string{key}, n.Ended...)
	n.Ended = n.Ended[:min(len(n.Ended), kept)]
}

// A Hold is why a node is sent nothing new until a person says otherwise.
type Hold struct {
	Kind     HoldKind  `json:"kind"`
	Sentence string    `json:"sentence"`
	At       time.Time `json:"at"`
	// Have is what a node has that is ahead, as far as it said so.
	Have *link.Position `json:"have,omitempty"`
}

// HoldKind is what was found.
type HoldKind string

const (
	// Cloned: two machines use its key.
	Cloned HoldKind = "cloned"
	// Ahead: it has a declaration that this control plane, restored from a backup,
	// does not know.
	Ahead HoldKind = "ahead"
)

// Member says whether the node has modules: it is admitted and not revoked.
func (n *Node) Member() bool { return n.State == Admitted || n.State == Enrolled }

// Behind says whether the node has a declaration that it has not applied, in
// the mesh's epoch, and is to apply it.
func (n *Node) Behind(epoch uint64) bool {
	return n.Member() && n.Hold == nil && n.Wanted.Generation > 0 && (n.Applied.Generation != n.Wanted.Generation || n.Applied.Epoch != epoch)
}

// A Decision is what was decided about a node, and on what.
type Decision struct {
	State  NodeState `json:"state"`
	Reason string    `json:"reason"`
	// Profile is the digest of the profile that was looked at.
	Profile string    `json:"profile"`
	At      time.Time `json:"at"`
	// ByPerson says that no rule and no token decided.
	ByPerson bool `json:"by_person,omitempty"`
}

// An Approval is what a person wants of a machine that is not there to be admitted.
type Approval struct {
	Name string   `json:"name"`
	Tags []string `json:"tags,omitempty"`
}

// Wanted names the declaration a node shall have; its bytes are beside it
// (Tx.Declaration).
type Wanted struct {
	// Generation is the node's own count; 0 means that there is none yet.
	Generation uint64 `json:"generation"`
	// Epoch is the one it was made in, and Base the newest generation that was made
	// in an earlier one: what a restore knew.
	Epoch  uint64 `json:"epoch,omitempty"`
	Base   uint64 `json:"base,omitempty"`
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// Content is the digest of the declaration without its generation and name:
	// equal means that nothing a host would act on changed.
	Content string `json:"content,omitempty"`
	// Sources are the digests the node may read: those of its declaration, but for
	// what its own machine brought along.
	Sources []string `json:"sources,omitempty"`
	// At is since when this generation is wanted.
	At time.Time `json:"at,omitzero"`
}

// Known is the newest generation of earlier epochs than epoch that this control
// plane made.
func (w *Wanted) Known(epoch uint64) uint64 {
	if w.Epoch == epoch {
		return w.Base
	}
	return w.Generation
}

// Applied is what the node said last of a declaration of this mesh.
type Applied struct {
	Epoch      uint64    `json:"epoch,omitempty"`
	Generation uint64    `json:"generation,omitempty"`
	At         time.Time `json:"at,omitzero"`
	// Failed is how many of its resources are not as declared.
	Failed int `json:"failed,omitempty"`
	// Version is the host's that runs, Installed the one on disk if it differs.
	Version   string `json:"version,omitempty"`
	Installed string `json:"installed,omitempty"`
}

// A Module is a named set of resources and the rule where it is present.
type Module struct {
	Name string `json:"name"`
	// Version grows with each change of the document.
	Version uint64 `json:"version"`
	// Digest is that of the document, whose bytes are beside it
	// (Tx.ModuleDocument).
	Digest string `json:"digest"`
	// Placement is a list of rules of which one must hold: "every", "node=N",
	// "tag=T", "profile.KEY=V". Empty places it nowhere.
	Placement []string  `json:"placement"`
	Changed   time.Time `json:"changed"`
	// From is the id of the node whose machine brought it along: all of it, its
	// name too, is that machine's own word until a person declares it.
	From string `json:"from,omitempty"`
}

// A Pushed is a module that came as a bundle: the newest bundle of its name for one
// architecture. Its content is in the content store.
type Pushed struct {
	// Name, Version, Architecture, Counter and MinimumHost are the bundle's.
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	Counter      uint64 `json:"counter"`
	MinimumHost  string `json:"minimum_host,omitempty"`
	// Bundle is the digest of what was signed, Declaration that of the document.
	Bundle      string `json:"bundle"`
	Declaration string `json:"declaration"`
	// Sources are the digests that the document names.
	Sources []string `json:"sources,omitempty"`
	// Signers are the ids of the keys that signed, as a release root names them.
	Signers []string `json:"signers"`
	// Placement is as a Module's, and that of all architectures of the name; one that
	// it holds for has the bundle of its own architecture. Empty places it nowhere.
	Placement []string  `json:"placement,omitempty"`
	At        time.Time `json:"at"`
}

// A Published is the release that new machines of one architecture are served: the
// newest that was pushed. Its content is in the content store.
type Published struct {
	// Name, Version, Architecture and Counter are the bundle's.
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	Counter      uint64 `json:"counter"`
	// Bundle is the digest of what was signed.
	Bundle string `json:"bundle"`
	// List is the signed list of its files (bundle/seed), Signature its signature.
	List      []byte `json:"list"`
	Signature []byte `json:"signature"`
	// Sources are the digests of those files.
	Sources []string  `json:"sources"`
	At      time.Time `json:"at"`
}

// An Event is one line of the log of what happened.
type Event struct {
	Sequence uint64    `json:"sequence"`
	At       time.Time `json:"at"`
	// Kind is a word such as "node.admitted".
	Kind     string `json:"kind"`
	Node     string `json:"node,omitempty"`
	Token    string `json:"token,omitempty"`
	Sentence string `json:"sentence"`
}

// A Report is one report of a node, as it came, and when.
type Report struct {
	At     time.Time   `json:"at"`
	Report link.Report `json:"report"`
}

func encode(v any) ([]byte, error)    { return json.Marshal(v) }
func decode(b []byte, into any) error { return json.Unmarshal(b, into) }
