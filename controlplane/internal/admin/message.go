package admin

import (
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/door"
)

// None is the question or the answer of a verb that has none.
type None = door.None

// TokenMade is a new token. Token is the secret line; it is never told again.
type TokenMade struct {
	Token     string    `json:"token"`
	ID        string    `json:"id"`
	Expires   time.Time `json:"expires"`
	Uses      int       `json:"uses"`
	Addresses []string  `json:"addresses"`
}

// TokenRevoked is a token that is revoked. Already is true when it was earlier.
type TokenRevoked struct {
	ID      string    `json:"id"`
	Revoked time.Time `json:"revoked"`
	Already bool      `json:"already"`
}

// A Ref names a token or a node.
type Ref struct {
	Ref string `json:"ref"`
}

// A Leaving names a node that is to be revoked. Last lets it be the one that
// runs the control plane.
type Leaving struct {
	Ref  string `json:"ref"`
	Last bool   `json:"last,omitempty"`
}

// NodeRevoked is a node that is revoked. Already is true when it was earlier.
type NodeRevoked struct {
	Node
	Already bool `json:"already"`
}

// A Retirement names a node that is to leave. KeepResources has it let go of what it
// owns instead of removing it; DryRun only asks what it owns.
type Retirement struct {
	Leaving
	KeepResources bool `json:"keep_resources,omitempty"`
	DryRun        bool `json:"dry_run,omitempty"`
}

// NodeRetiring is a node that is to leave. Owns is what it said last that it owns,
// Already is true when it was to leave, or left, earlier.
type NodeRetiring struct {
	Node
	Owns    []string `json:"owns"`
	Already bool     `json:"already"`
}

// RootRotated is the mesh root that was, and the one that is.
type RootRotated struct {
	Before string `json:"before"`
	Pin    string `json:"pin"`
}

// An Address is one address of the control plane.
type Address struct {
	Address string `json:"address"`
}

// Addresses is where nodes find the control plane. Given is false when nobody
// gave any and they were found by themselves. Changed says that the question
// changed the list.
type Addresses struct {
	Addresses []string `json:"addresses"`
	Given     bool     `json:"given"`
	Changed   bool     `json:"changed"`
}

// Approval admits a pending node, as the node Rejoin when that is given, or releases
// one that is held.
type Approval struct {
	Ref    string   `json:"ref"`
	Name   string   `json:"name,omitempty"`
	Tags   []string `json:"tags,omitempty"`
	Rejoin string   `json:"rejoin,omitempty"`
}

// A Declaration of a module. A nil Placement keeps the one it has. DryRun asks
// what would be, Last lets the control plane itself go.
type Declaration struct {
	Name      string   `json:"name"`
	Document  []byte   `json:"document"`
	Placement []string `json:"placement"`
	DryRun    bool     `json:"dry_run,omitempty"`
	Last      bool     `json:"last,omitempty"`
}

// A ModuleRef names a module. Last lets the control plane itself go with it.
type ModuleRef struct {
	Name string `json:"name"`
	Last bool   `json:"last,omitempty"`
}

// A Push says how a bundle is to be taken; its bytes come with it.
type Push struct {
	// Placement is where the module shall be present; nil keeps where that is.
	Placement []string `json:"placement,omitempty"`
	// Last lets the control plane itself go.
	Last bool `json:"last,omitempty"`
	// AllowRollback lets a lower counter pass.
	AllowRollback bool `json:"allow_rollback,omitempty"`
	// Trust is a directory to trust instead of what the control plane trusts, Key
	// a key file to trust as well.
	Trust string `json:"trust,omitempty"`
	Key   string `json:"key,omitempty"`
}

// Pushed is what became of a bundle. Changed is false when it was there already.
// Published says that new machines are served what it brings for them, NotPublished
// why they are not.
type Pushed struct {
	state.Pushed
	Changed bool `json:"changed"`
	// Nodes are the ids of those that have a new declaration, Present on how many
	// nodes it is.
	Nodes        []string `json:"nodes"`
	Present      int      `json:"present"`
	Published    bool     `json:"published,omitempty"`
	NotPublished string   `json:"not_published,omitempty"`
}

// Orphan is the state of a node that is known by its certificate alone.
const Orphan = "orphan"

// A Node is one line of `nodes`.
type Node struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Hostname is what the machine says it is called.
	Hostname string   `json:"hostname,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	// State is "pending", "refused", "enrolling", "enrolled", "disconnected", "cloned",
	// "ahead", "retiring", "retired", "revoked" or "orphan".
	State string `json:"state"`
	// Connected says that the node has a link. One that is "enrolled" and not
	// connected never was.
	Connected bool   `json:"connected"`
	Conflict  string `json:"conflict,omitempty"`
	// Hold is why it is sent nothing new until a person approves it.
	Hold    *state.Hold `json:"hold,omitempty"`
	Wanted  uint64      `json:"wanted"`
	Applied uint64      `json:"applied"`
	// Behind is since when a connected node could have applied what is wanted and
	// has not, once that is a minute.
	Behind  time.Time `json:"behind_since,omitzero"`
	Failed  int       `json:"failed"`
	Version string    `json:"version,omitempty"`
	// Installed is the version on the disk when another one runs.
	Installed string    `json:"installed,omitempty"`
	LastSeen  time.Time `json:"last_seen,omitzero"`
}

// NodeDetail is everything known of a node.
type NodeDetail struct {
	Node
	Key         string             `json:"key"`
	Decision    state.Decision     `json:"decision"`
	Declaration string             `json:"declaration,omitempty"`
	Modules     []string           `json:"modules"`
	Grants      []*state.Grant     `json:"grants"`
	Profile     profile.Profile    `json:"profile"`
	Inventory   *profile.Inventory `json:"inventory,omitempty"`
	Failing     []Failing          `json:"failing"`
	// Loses are what a node that is held owns and would not, once it is released.
	Loses   []string        `json:"loses,omitempty"`
	Reports []*state.Report `json:"reports"`
}

// Failing is a resource that is not as declared.
type Failing struct {
	Key     string `json:"key"`
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
	// Since is when it was first reported so, as far as reports are kept.
	Since time.Time `json:"since"`
}

// Limit is how many to list.
type Limit struct {
	Limit int `json:"limit"`
}

// Status is the control plane at a glance.
type Status struct {
	Version   string          `json:"version"`
	Mesh      string          `json:"mesh"`
	Epoch     uint64          `json:"epoch"`
	Pin       string          `json:"pin"`
	Listen    string          `json:"listen"`
	Addresses []string        `json:"addresses"`
	Links     int             `json:"links"`
	Nodes     map[string]int  `json:"nodes"`
	Modules   []*state.Module `json:"modules"`
	// Pushed are the modules that are not placed yet.
	Pushed []*state.Pushed `json:"pushed"`
	// Admission are the rules in force, in order.
	Admission []Rule `json:"admission"`
	// Content is what the content store holds.
	Content Content `json:"content"`
	// Restored is the last restore, nil when there was none.
	Restored *state.Restored `json:"restored,omitempty"`
	// Repository is what new machines are served.
	Repository Repository `json:"repository"`
	// Warnings are what a person should act on.
	Warnings []string `json:"warnings,omitempty"`
}

// Content is the size of the content store.
type Content struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}

// The verbs.
var (
	TokenCreate   = door.Verb[admission.TokenOptions, TokenMade]{Name: "token-create"}
	TokenList     = door.Verb[None, []admission.TokenStatus]{Name: "token-list", Again: true}
	TokenRevoke   = door.Verb[Ref, TokenRevoked]{Name: "token-revoke", Again: true}
	AddressAdd    = door.Verb[Address, Addresses]{Name: "address-add", Again: true}
	AddressRemove = door.Verb[Address, Addresses]{Name: "address-remove"}
	AddressList   = door.Verb[None, Addresses]{Name: "address-list", Again: true}
	Nodes         = door.Verb[None, []Node]{Name: "nodes", Again: true}
	Show          = door.Verb[Ref, NodeDetail]{Name: "show", Again: true}
	Declare       = door.Verb[Declaration, module.Change]{Name: "declare", Again: true}
	Undeclare     = door.Verb[ModuleRef, module.Change]{Name: "undeclare"}
	Approve       = door.Verb[Approval, Node]{Name: "approve"}
	Revoke        = door.Verb[Leaving, NodeRevoked]{Name: "revoke", Again: true}
	Retire        = door.Verb[Retirement, NodeRetiring]{Name: "retire", Again: true}
	RotateRoot    = door.Verb[None, RootRotated]{Name: "root-rotate"}
	Events        = door.Verb[Limit, []*state.Event]{Name: "events", Again: true}
	GetStatus     = door.Verb[None, Status]{Name: "status", Again: true}
	Join          = door.Verb[Joining, Joined]{Name: "join", Again: true}
	deliver       = door.Stream[Push, Pushed]{Name: "push"}
)
