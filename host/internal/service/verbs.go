package service

import (
	"context"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/link/client"
	"github.com/nox-mesh/nox-mesh/internal/metrics"
)

// Host is every verb that needs the store. A Service does them itself; a
// remote one asks the Service that holds the store's lock, over its socket.
type Host interface {
	Status(ctx context.Context) (Status, error)
	Owned(ctx context.Context) ([]Owned, error)
	// History returns the reports, the newest first.
	History(ctx context.Context) ([]link.Report, error)
	// Metrics says what is known in figures, and looks at nothing.
	Metrics(ctx context.Context) ([]metrics.Family, error)
	// Plan says what applying the document would do.
	Plan(ctx context.Context, document []byte) ([]apply.Step, error)
	// Apply applies a document a person gave.
	Apply(ctx context.Context, document []byte) (link.Report, error)
	// Bundle applies the bundle whose content is in the content store.
	Bundle(ctx context.Context, r BundleRequest) (link.Report, error)
	// Enrol enrols with the text of a token.
	Enrol(ctx context.Context, token string) (Enrolled, error)
	// NewIdentity makes a copied machine a node of its own, with the text of a token.
	NewIdentity(ctx context.Context, token string) (Enrolled, error)
	// Unowned lists what this node was told to have once and the host does not own.
	Unowned(ctx context.Context) ([]Unowned, error)
	// Adopt makes the host own what is unowned and as it was declared.
	Adopt(ctx context.Context, q AdoptRequest) ([]Unowned, error)
	// Retire takes away what the host owns, and leaves the mesh.
	Retire(ctx context.Context, r RetireRequest) (Retired, error)
	// Pass reconciles now, and starts again what is as declared and failing.
	Pass(ctx context.Context) (link.Report, error)
}

// State is the state of a machine that has a host.
type State string

// The states. (A machine without a host is unmanaged, and has nobody to ask.)
const (
	StateHosted       State = "hosted"
	StateEnrolled     State = "enrolled"
	StateDisconnected State = "disconnected"
)

// Status is what a person asks first.
type Status struct {
	State State `json:"state"`
	// Running: a service answers; else the command looked by itself.
	Running bool `json:"running"`
	// Since is when that service started.
	Since time.Time `json:"since,omitzero"`
	// Version is the one that runs; Installed is the one on the disk, when it differs.
	Version   string `json:"version"`
	Installed string `json:"installed,omitempty"`
	// Failed is a version that could not live here, until another proves itself.
	Failed *FailedHost `json:"failed,omitempty"`
	Mesh   string      `json:"mesh,omitempty"`
	Node   string      `json:"node,omitempty"`
	NodeID string      `json:"node_id,omitempty"`
	// Declaration is the one in force.
	Declaration *store.Wanted `json:"declaration,omitempty"`
	// Owned counts the owned resources.
	Owned int `json:"owned"`
	// Last is the newest pass the store or this service knows.
	Last *link.Report `json:"last,omitempty"`
	// Off are the resources that are not as declared, as a look finds them now.
	Off  []Off         `json:"off,omitempty"`
	Link *client.State `json:"link,omitempty"`
	// Content is what the content store holds.
	Content Content `json:"content"`
	// Busy is what is being worked on now.
	Busy *apply.Busy `json:"busy,omitempty"`
	// Warnings are what a person should act on.
	Warnings []string `json:"warnings,omitempty"`
}

// Content is the size of the content store.
type Content struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}

// Off is one resource that is not as declared.
type Off struct {
	Key string `json:"key"`
	// There is how: "drifted", "failing" or "unknown" for what is owned, else
	// the outcome of the last pass ("failed", "skipped" …).
	There string `json:"there"`
	// Differences say more, one phrase each.
	Differences []string `json:"differences,omitempty"`
	// Since is the end of the first of the passes in a row that did not find it, or
	// make it, as declared. What only a look found has none.
	Since time.Time `json:"since,omitzero"`
	// Times is how many passes in a row that were, of those the running service made.
	Times int `json:"times,omitempty"`
}

// Owned is one owned resource.
type Owned struct {
	Key  string           `json:"key"`
	ID   string           `json:"id"`
	Type declaration.Type `json:"type"`
	// Mesh is the mesh that declares it, or "" for a local declaration.
	Mesh       string    `json:"mesh,omitempty"`
	Epoch      uint64    `json:"epoch,omitempty"`
	Generation uint64    `json:"generation"`
	Adopted    bool      `json:"adopted,omitempty"`
	Since      time.Time `json:"since"`
	// There says whether the machine has it as applied: "as applied",
	// "drifted", "failing" (as applied, and not doing its work) or "unknown"
	// when it could not be looked at.
	There string `json:"there"`
	// Differences say how it drifted.
	Differences []string `json:"differences,omitempty"`
}

// BundleRequest names a bundle in the content store.
type BundleRequest struct {
	Digest digest.Digest `json:"digest"`
	// Override is what the command was told to trust instead.
	Override Override `json:"override"`
	// AllowRollback lets a lower counter pass.
	AllowRollback bool `json:"allow_rollback,omitempty"`
}

// Enrolled says what became of an enrolment.
type Enrolled struct {
	Mesh   string `json:"mesh"`
	Node   string `json:"node"`
	NodeID string `json:"node_id"`
	// Already: the machine was a node of this mesh; the token was not used.
	Already bool `json:"already,omitempty"`
	// Pending: a person has to admit the machine.
	Pending bool `json:"pending,omitempty"`
	// Asking: the service goes on asking whether one did.
	Asking bool `json:"asking,omitempty"`
	// Declared: the declaration of the mesh is in force and was applied once.
	Declared bool `json:"declared"`
}
