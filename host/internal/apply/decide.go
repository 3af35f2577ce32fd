package apply

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// Action is what is to be done with a resource.
type Action string

// The actions.
const (
	// Keep: it is as declared, and ours.
	Keep Action = "keep"
	// Adopt: it is as declared and becomes ours, untouched.
	Adopt Action = "adopt"
	// Create: nothing of that name is there.
	Create Action = "create"
	// Change: it is there and not as declared.
	Change Action = "change"
	// Restart: it is as declared, and what it depends on changed, or it fails
	// and a person asked for another try.
	Restart Action = "restart"
	// Remove: it is ours and no longer declared.
	Remove Action = "remove"
	// Release: it is no longer declared, and stays.
	Release Action = "release"
	// Conflict: a thing of that name is there that is not ours to replace.
	Conflict Action = "conflict"
	// Unsupported: this host or this machine cannot have such a thing.
	Unsupported Action = "unsupported"
	// Held: it is not as declared, and somebody holds it as it is.
	Held Action = "held"
)

// Todo reports whether the action changes anything, on the machine or in who
// owns what.
func (a Action) Todo() bool { return a != Keep && a != Unsupported && a != Held }

// acts reports whether the kind must be called to make it so.
func (a Action) acts() bool { return a == Create || a == Change || a == Restart }

// decide says what is to be done with a declared resource, from what a look at
// it found. prior is its record, nil when it is not ours. restart says that
// something it names in restart_on changed, again that a person asked for what
// fails to be tried anew, formerly that it was ours before the store was lost. It is all there is to the decision: a plan and a pass
// come to the same.
func decide(r *declaration.Resource, prior *resource.Record, st resource.State, restart, again, formerly bool) Action {
	switch {
	case st.Same && (restart || again && st.Failing != ""):
		return Restart
	case st.Same && prior == nil:
		return Adopt
	case st.Same:
		return Keep
	case st.Blocked != "", st.Foreign && prior == nil && !formerly && !r.TakeOver:
		return Conflict
	case !st.Exists:
		return Create
	}
	return Change
}

// conflict is the error of what is not ours to replace.
func conflict(st resource.State) error {
	if st.Blocked != "" {
		return errors.New(st.Blocked)
	}
	return fmt.Errorf("exists and is not ours (%s); say \"take_over\": true to own it", strings.Join(st.Differences, ", "))
}

// unsupported says why nothing is done about a resource that can be declared.
func unsupported(r *declaration.Resource) string {
	return fmt.Sprintf("this version of the host cannot apply resources of the type %q", r.Type)
}
