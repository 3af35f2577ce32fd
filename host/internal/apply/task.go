package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
)

// A task is a declared resource on its way through a pass.
type task struct {
	job
	resource *declaration.Resource
	kind     resource.Kind
	want     resource.Want
	prior    *resource.Record
	// restart: something it names in restart_on changed.
	restart bool

	// begun: it was tried in a crowd, which did not work, and before is what was
	// there until then, and differed how.
	begun    bool
	before   json.RawMessage
	differed []string

	// tried: its kind was called to apply it.
	tried bool

	// found is what the look before saw, now what the look after did.
	found, now resource.State
	action     Action
}

// anew is the task to be tried by itself. What the crowd left half done is not
// what was there before.
func (t *task) anew() *task {
	return &task{
		job: job{key: t.key, typ: t.typ}, resource: t.resource, kind: t.kind, want: t.want, prior: t.prior, restart: t.restart,
		tried: t.tried, begun: true, before: t.found.Found, differed: t.found.Differences,
	}
}

// A verdict is what is said of a resource.
type verdict struct {
	outcome declaration.Outcome
	note    string
	err     error
}

func failed(err error) verdict { return verdict{outcome: declaration.Failed, err: err} }

// untouched is the verdict on what nothing was done about. What this machine
// cannot have, or somebody holds, is no failure of the resource.
func untouched(err error) verdict {
	if h := (resource.Held{}); errors.As(err, &h) {
		return verdict{declaration.Held, h.Why, nil}
	}
	if u := (resource.Unsupported{}); errors.As(err, &u) {
		return verdict{declaration.Unsupported, u.Why, nil}
	}
	return failed(err)
}

// drifted reports whether what was applied before is no longer so.
func (t *task) drifted() bool {
	return t.prior != nil && bytes.Equal(t.prior.Spec, t.want.Spec) && t.action != Restart && !t.restart
}

// intent is written before it is touched.
func (t *task) intent(p *pass) store.Intent {
	return store.Intent{
		Key: t.key, ID: t.resource.ID, Type: t.typ, Spec: t.want.Spec, Before: t.record(p).Before,
		Restarts: p.restarts.users[t.resource.ID], At: p.engine.Clock.Now().UTC(),
	}
}

// record is what the store shall remember of it.
func (t *task) record(p *pass) resource.Record {
	rec := p.record(*t.resource, t.want.Spec)
	rec.Before = t.found.Found
	if t.begun {
		rec.Before = t.before
	}
	if p.engine.formerly(t) {
		rec.Before = nil // what is there is what it made; what was before that is not known any more
	}
	if t.prior != nil {
		rec.Before, rec.Sequence, rec.Adopted = t.prior.Before, t.prior.Sequence, t.prior.Adopted
	}
	return rec
}

// formerly says whether the thing was this host's before it lost its store, and is
// not yet again.
func (e *Engine) formerly(t *task) bool {
	return t.prior == nil && e.Formerly != nil && e.Formerly(t.key)
}

// applied is the verdict on what was made as declared.
func (t *task) applied() verdict {
	switch {
	case t.now.Failing != "":
		return verdict{declaration.Failed, t.now.Note, errors.New(t.now.Failing)}
	case t.drifted():
		how := t.found.Differences
		if t.begun {
			how = t.differed
		}
		return verdict{declaration.Repaired, join("drifted: "+strings.Join(how, ", "), t.found.Note, t.now.Note), nil}
	}
	return verdict{declaration.Applied, join(t.found.Note, t.now.Note), nil}
}

// kept is the verdict on what was as declared already.
func (t *task) kept(good declaration.Outcome) verdict {
	if t.found.Failing != "" {
		return verdict{declaration.Failed, t.found.Note, errors.New(t.found.Failing)}
	}
	return verdict{good, t.found.Note, nil}
}

// stillNot is the error of what was applied and is not as declared.
func stillNot(st resource.State) error {
	return fmt.Errorf("was applied and is still not as declared: %s", strings.Join(st.Differences, ", "))
}

// join puts together what there is to say.
func join(notes ...string) string {
	var said []string
	for _, n := range notes {
		if n != "" {
			said = append(said, n)
		}
	}
	return strings.Join(said, "; ")
}
