package apply

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A parter is what a kind implements that lets go of some of what is no longer
// declared, where it would take away the rest.
type parter interface {
	// Parting returns what tells why Remove would release what the record is of,
	// or "" when it would take it away. It is called for records in the order of
	// their removal, and changes nothing. The error may be a Held, as that of
	// Remove. What it says and what Remove does come from one place. A call that
	// hangs is left, and the next is made while it goes on.
	Parting() func(ctx context.Context, record resource.Record) (why string, err error)
}

// stays says why the engine itself releases what is no longer declared, or "":
// leaving the host's own binary out of a declaration never removes it, and puts
// no older one back. It looks at the machine.
func (e *Engine) stays(r *resource.Record) string {
	if p, ok := strings.CutPrefix(r.Key, "file:"); ok && (e.namesHost(r.Key) || e.isBinary(p)) {
		return "the host itself stays"
	}
	return ""
}

// namesHost is what the name alone says: it is that of the host's own binary.
func (e *Engine) namesHost(key string) bool {
	p, ok := strings.CutPrefix(key, "file:")
	return ok && slices.ContainsFunc(e.Layout.Prefixes(), func(prefix string) bool { return p == path.Join(prefix, "bin", layout.HostName) })
}

func unknownType(t declaration.Type) error {
	return fmt.Errorf("cannot remove it: this version does not know the type %q", t)
}

// partings are the steps by which what is no longer declared goes.
func (p *pass) partings(ctx context.Context, q *Inquiry, gone []*resource.Record) []Step {
	asked := map[declaration.Type]func(context.Context, resource.Record) (string, error){}
	steps := make([]Step, 0, len(gone))
	for _, r := range gone {
		if ctx.Err() != nil {
			return steps
		}
		s := Step{Key: r.Key, ID: r.ID, Action: Remove}
		kind, known := p.engine.Kinds[r.Type]
		if k, ok := kind.(parter); ok && asked[r.Type] == nil {
			asked[r.Type] = k.Parting()
		}
		// What is told of one knows of those before: another's answer is of no use.
		of, why := question{r.Key, r.Type, "parting", q}, asked[r.Type]
		var err error
		s.Note, err = ask(ctx, q, of, func(ctx context.Context) (string, error) {
			stays := p.engine.stays(r)
			switch {
			case stays != "":
				return stays, nil
			case !known:
				return "", unknownType(r.Type)
			case why != nil:
				return why(ctx, *r)
			}
			return "", nil
		})
		if s.Note != "" {
			s.Action = Release
		}
		if err != nil {
			s.untouched(err)
		}
		steps = append(steps, s)
	}
	return steps
}
