package module

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A part is one module of a composition.
type part struct {
	module   string
	document *declaration.Declaration
	// brought says that a machine brought it along: it has the content, and
	// naming a digest entitles it to nothing of the control plane's.
	brought bool
}

// Conflicts is the error of parts that declare the same thing.
type Conflicts []Conflict

// A Conflict is one thing that two modules declare. Key is as
// declaration.Resource.Key gives it.
type Conflict struct{ Key, First, Second string }

// Error names the thing and both modules.
func (c Conflicts) Error() string {
	const told = 5
	var s []string
	for i, x := range c {
		if i == told {
			s = append(s, fmt.Sprintf("and %d more", len(c)-told))
			break
		}
		s = append(s, fmt.Sprintf("%q is declared by module %q and by module %q", x.Key, x.First, x.Second))
	}
	return strings.Join(s, "; ")
}

// A composition is what the nodes with the same modules have in common: their
// declaration but for its generation and its name.
type composition struct {
	// tail is the document after the name.
	tail    []byte
	content string
	// sources are what the nodes may read, by digest.
	sources []string
	keys    map[string]*declaration.Resource
}

// head is how a document in normal form begins (declaration.Marshal sorts the
// names). Neither a number nor a name needs escapes.
func head(node string, generation uint64) string {
	return fmt.Sprintf(`{"generation":%d,"name":%q`, generation, node)
}

// compose makes one declaration of the parts, in their order. Ids become
// MODULE/ID, wherever they stand; nothing else of a resource is touched.
func compose(parts []part) (*composition, error) {
	out := &declaration.Declaration{Schema: declaration.Schema, Name: "node", Resources: []declaration.Resource{}}
	var conflicts Conflicts
	by := map[string]string{}
	for _, p := range parts {
		for _, r := range p.document.Resources {
			key := r.Key()
			if first, ok := by[key]; ok {
				conflicts = append(conflicts, Conflict{Key: key, First: first, Second: p.module})
				continue
			}
			by[key] = p.module
			r.ID = p.module + "/" + r.ID
			r.After = prefixed(p.module, r.After)
			r.RestartOn = prefixed(p.module, r.RestartOn)
			out.Resources = append(out.Resources, r)
		}
	}
	if len(conflicts) > 0 {
		return nil, conflicts
	}
	doc, err := out.Marshal()
	if err != nil {
		return nil, fmt.Errorf("the composition cannot be written: %w", err)
	}
	// Each part was valid; the whole may still be too large, or an id too long.
	if _, err := declaration.Parse(doc); err != nil {
		return nil, fmt.Errorf("the composition breaks a rule: %w", err)
	}
	tail, ok := bytes.CutPrefix(doc, []byte(head(out.Name, 0)))
	if !ok {
		return nil, errors.New("internal error: a declaration does not begin with generation and name")
	}
	c := &composition{tail: tail, content: digest.FromBytes(doc).String(), keys: byKey(out)}
	for _, p := range parts {
		if p.brought {
			continue
		}
		for _, src := range p.document.Sources() {
			if !slices.Contains(c.sources, src.String()) {
				c.sources = append(c.sources, src.String())
			}
		}
	}
	return c, nil
}

// stamp returns the document of one node.
func (c *composition) stamp(node string, generation uint64) ([]byte, error) {
	h := head(node, generation)
	if len(h)+len(c.tail) > declaration.MaxSize {
		return nil, fault.Refusedf("the composition is longer than %d bytes", declaration.MaxSize)
	}
	return append([]byte(h), c.tail...), nil
}

func prefixed(module string, ids []string) []string {
	if ids == nil {
		return nil
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = module + "/" + id
	}
	return out
}

// involves reports that err is the module's doing: a conflict that names it,
// or no conflict at all.
func involves(err error, module string) bool {
	var c Conflicts
	if !errors.As(err, &c) {
		return true
	}
	for _, x := range c {
		if x.First == module || x.Second == module {
			return true
		}
	}
	return false
}
