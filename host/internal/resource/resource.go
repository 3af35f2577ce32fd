// Package resource is the contract between the host's engine and the kinds of
// things it can apply. Each kind is one folder below this one; the engine's
// map of them is the only place that lists them all.
package resource

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// A Kind applies one type of resource. The engine calls it; it decides nothing.
//
// What every method promises:
//
//   - It is idempotent: calling it again after it returned nil changes nothing.
//   - It may be killed at any instant, by SIGKILL or a power cut. The next
//     Check then sees the old state or the new, or something Apply repairs.
//   - It returns soon after its context ends, and leaves nothing running that
//     it did not mean to leave.
//   - It never logs and never prints: what it has to say is in what it returns.
//     Errors read "cannot VERB OBJECT: cause"; the engine adds the resource.
//   - It touches only what the resource names, follows no symlink out of the
//     layout's root, and never trusts an exit code: Check looks at the machine.
//   - A resource is valid (declaration.Parse made it) and may be used from one
//     goroutine at a time; different resources may be used at once. Check may be
//     called at any time: somebody asks while a pass is at it.
type Kind interface {
	// Check looks at the machine and says how it differs from what is wanted.
	// It changes nothing: no write, no fsync, no child process on the way that
	// finds everything as declared. prior is the record of the resource if the
	// host owns it, else nil. The error is an Unsupported when this machine
	// cannot have such a thing, and a Held when somebody holds it as it is.
	Check(ctx context.Context, want Want, prior *Record) (State, error)

	// Apply makes the machine as wanted. found is what Check said a moment ago.
	// It returns nil when it believes to have done so; the engine checks.
	// What it replaces it must be able to give back: see State.Found.
	Apply(ctx context.Context, want Want, prior *Record, found State) error

	// Remove takes away what the record says the host made, or gives back what
	// was there before. A thing that is already gone is Removed. It returns
	// Removed or Released (with a note when it kept something aside). The error
	// may be a Held, as that of Check.
	Remove(ctx context.Context, record Record) (declaration.Outcome, string, error)
}

// Unsupported is the error of Check on a machine that cannot have what is
// wanted, for want of a service manager, a container runtime, a package manager.
// It is no failure: the outcome is unsupported, and the next pass asks again.
type Unsupported struct {
	// Why says what is missing: "systemd does not run here".
	Why string
}

func (u Unsupported) Error() string { return u.Why }

// Held is the error of what is not as wanted and is not to be touched, because
// the administrator holds it as it is. It is no failure: the outcome is held,
// and the next pass asks again.
type Held struct {
	// Why says who holds what, and how that ends: `it is on hold; "apt-mark unhold
	// htop" lets it change`.
	Why string
}

func (h Held) Error() string { return h.Why }

// Want is a resource as it shall be.
type Want struct {
	Resource declaration.Resource
	// Spec is the resource in normal form (declaration.Resource.Spec): equal
	// bytes mean the same wish. It holds no id.
	Spec json.RawMessage
	// Restart tells Apply to start the thing anew though it may be as wanted:
	// something this resource names in restart_on changed since it was last
	// applied, or it fails and a person asked for another try.
	Restart bool
}

// State is what Check saw.
type State struct {
	// Same: the machine is as wanted, in every respect the kind looks at.
	Same bool
	// Exists: there is a thing of that name, as wanted or not.
	Exists bool
	// Foreign: Exists, it is not as wanted and not ours, and this kind does not
	// replace other people's things: a conflict unless the resource says
	// take_over.
	Foreign bool
	// Strange: what is there is nothing that Apply could have made of the wish, not
	// even half of it before it was killed.
	Strange bool
	// Blocked says why Apply would refuse, of what is there and nobody's to replace
	// ("a directory is there, and a file does not take its place").
	Blocked string
	// Differences says for people how the machine differs, one short phrase
	// each ("content", "mode 0644, want 0600"). Never the content of a secret.
	Differences []string
	// Found describes what is there so that Remove can give it back: the kind's
	// own JSON, kept in the intent before Apply and in the record after. It is
	// nil when there is nothing to give back and nothing to take away again.
	Found json.RawMessage
	// Note is something a person should know though all is as wanted.
	Note string
	// Failing says what is wrong with a thing that is as wanted and yet does not
	// do what it is for ("exited with 1, 3 failures in a row, backing off").
	// Same stays true, because Apply could not help and would only start its
	// back-off anew; the outcome is failed, with this as the error.
	Failing string
}

// Record is what the store remembers of one owned resource.
type Record struct {
	// Key is Resource.Key: what the thing is.
	Key string `json:"key"`
	// ID is the id in the declaration that applied it last.
	ID string `json:"id"`
	// Type selects the kind.
	Type declaration.Type `json:"type"`
	// Spec is the wish that was applied.
	Spec json.RawMessage `json:"spec"`
	// Before is State.Found of the moment before the host first touched it:
	// null when nothing was there.
	Before json.RawMessage `json:"before,omitempty"`
	// Adopted: it was there, as declared, before the host owned it.
	Adopted bool `json:"adopted,omitempty"`
	// Mesh, Epoch, Generation and Declaration say which declaration applied it.
	Mesh        string `json:"mesh,omitempty"`
	Epoch       uint64 `json:"epoch,omitempty"`
	Generation  uint64 `json:"generation"`
	Declaration string `json:"declaration"`
	// Sequence grows with each record that is made: removal runs in reverse.
	Sequence uint64 `json:"sequence"`
	// At is when it was applied, for people.
	At time.Time `json:"at"`
}
