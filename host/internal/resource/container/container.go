// Package container is the kind "container": an image that the machine's
// container runtime runs, podman or docker, asked over its socket in the words
// of the Docker Engine API (client.go).
//
// A container of ours carries three labels: for which name it was made, a digest
// of all that was asked for (definition.go), and the image that was declared. It
// is as declared when the digest is that of the wish, what the runtime says of
// it agrees with the wish in every member, and it runs as its restart policy
// wants. One without our label is somebody else's and is not touched.
//
// An image that is declared by the digest of its manifest comes from the content
// store and never from a registry: it is streamed to the runtime as an archive
// (archive.go) and held by what the runtime calls it, which is the digest of its
// configuration or of its manifest (image.go). Both are digests over all that is
// in it. It gets a name of ours, so that a prune does not take it, and goes when
// no container needs it any more. A reference with a registry is pulled, by its
// digest, when the runtime has nothing of that digest.
//
// A changed container is made beside the old one, under a name of its own, while
// the old one runs:
//
//	create NAME.nox-next → rename NAME to NAME.nox-last → stop it →
//	rename NAME.nox-next to NAME → start it → see it live → remove NAME.nox-last
//
// When the new one does not start, or ends at once where it should not, it is
// removed and the old one gets its name back and runs again. A host that was killed
// on the way finds by the names how far it was (settle.go). What is taken over
// from somebody is stopped and kept as NAME.nox-before, and Remove gives it back.
//
// It promises nothing about what is in a volume: volumes stay. As with docker
// run, a command without args leaves the image's arguments out. What it cannot
// see, an option that is not declared and that somebody gave a container of ours
// by making it again with our labels, it does not undo.
package container

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// settleTime is how long a new container is watched before the old one goes.
const settleTime = 2 * time.Second

// Config is what the kind works with.
type Config struct {
	Layout  layout.Layout
	Content *content.Store
	Clock   clock.Clock
	// Socket is the runtime's; "" is the one that is there.
	Socket string
}

// A Kind applies container resources.
type Kind struct {
	Config
	settle time.Duration

	mu sync.Mutex
	// leasts are the oldest versions that runtimes take, by socket and version.
	leasts map[string]int

	// images is held from finding an image to having a container that uses it,
	// and alone to remove what no container uses.
	images sync.RWMutex
}

var _ resource.Kind = (*Kind)(nil)

// New makes the kind.
func New(c Config) *Kind {
	if c.Clock == nil {
		c.Clock = clock.System
	}
	return &Kind{Config: c, settle: settleTime, leasts: map[string]int{}}
}

// found is resource.State.Found: what of that name was there.
type found struct {
	// Own: something of ours, finished or not, which is not given back.
	Own bool `json:"own,omitempty"`
	// Other is somebody else's.
	Other *other `json:"other,omitempty"`
}

// An other is a container of somebody else's, as it was.
type other struct {
	ID      string `json:"id"`
	Running bool   `json:"running,omitempty"`
	Restart string `json:"restart,omitempty"`
}

func otherOf(c *inspected) *other {
	return &other{c.ID, c.State.Running, c.HostConfig.RestartPolicy.Name}
}

// Check implements resource.Kind.
func (k *Kind) Check(ctx context.Context, want resource.Want, prior *resource.Record) (resource.State, error) {
	name := want.Resource.Container.Name
	st, err := k.check(ctx, want, prior)
	if err != nil && !isUnsupported(err) {
		err = fmt.Errorf("cannot check container %q: %w", name, err)
	}
	return st, err
}

func (k *Kind) check(ctx context.Context, want resource.Want, prior *resource.Record) (st resource.State, err error) {
	c := want.Resource.Container
	r, err := k.runtime(ctx, c.Name)
	if err != nil {
		return st, err
	}
	d, err := k.definition(c)
	if err != nil {
		return st, err
	}
	s, err := r.survey(ctx, c.Name)
	if err != nil {
		return st, err
	}
	st.Exists = s.current != nil || len(s.ours) > 0
	f := found{Own: len(s.ours) > 0}
	if s.current == nil {
		st.Differences = append(st.Differences, "not there")
	} else {
		st.Foreign = !s.current.madeFor(c.Name)
		if st.Foreign {
			st.Differences = append(st.Differences, "not made by this host")
			f.Other = otherOf(s.current)
		}
		more, err := k.differences(ctx, r, d, s.current)
		if err != nil {
			return st, err
		}
		life := k.lifeOf(r, s.current, c.Restart)
		st.Differences = append(st.Differences, more...)
		if life.difference != "" {
			st.Differences = append(st.Differences, life.difference)
		}
		st.Failing, st.Note = life.failing, life.note
	}
	if left := s.leftovers(); len(left) > 0 {
		st.Differences = append(st.Differences, "unfinished: "+strings.Join(left, ", "))
	}
	if awake, err := k.parkedRuns(ctx, r, c.Name, prior); err != nil {
		return st, err
	} else if awake {
		st.Differences = append(st.Differences, fmt.Sprintf("%q runs, which was there before", c.Name+suffixBefore))
	}
	if st.Same = len(st.Differences) == 0; !st.Same {
		st.Failing, st.Note = "", ""
	}
	if f != (found{}) {
		st.Found, err = json.Marshal(f)
	}
	return st, err
}

// parkedRuns reports whether what the host took over from somebody was started
// again, by a reboot for example.
func (k *Kind) parkedRuns(ctx context.Context, r *runtime, name string, prior *resource.Record) (bool, error) {
	was, err := before(prior)
	if was == nil || err != nil {
		return false, err
	}
	c, err := r.inspect(ctx, name+suffixBefore)
	return c != nil && c.ID == was.ID && c.State.Running, err
}

// before is what was there before the host came, nil if nothing of somebody's.
func before(r *resource.Record) (*other, error) {
	if r == nil || r.Before == nil {
		return nil, nil
	}
	var f found
	if err := json.Unmarshal(r.Before, &f); err != nil {
		return nil, fmt.Errorf("cannot read what was there before: %w", err)
	}
	return f.Other, nil
}

// A survey is what of one name the runtime has.
type survey struct {
	name    string
	current *inspected
	// ours are all that were made for the name, whatever they are called now.
	ours []listed
}

func (r *runtime) survey(ctx context.Context, name string) (s survey, err error) {
	s.name = name
	if s.current, err = r.inspect(ctx, name); err != nil {
		return s, err
	}
	s.ours, err = r.list(ctx, labelName+"="+name)
	return s, err
}

// leftovers are the names of those that are ours and not the current one.
func (s survey) leftovers() []string {
	var out []string
	for _, l := range s.ours {
		if s.current == nil || l.ID != s.current.ID {
			out = append(out, l.name())
		}
	}
	slices.Sort(out)
	return out
}

func key(record resource.Record) (name string, err error) {
	name, ok := strings.CutPrefix(record.Key, string(declaration.TypeContainer)+":")
	if !ok || name == "" {
		return "", fmt.Errorf("internal error: %q is no container", record.Key)
	}
	return name, nil
}
