package module

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Part is one module of a composition.
type Part struct {
	Module   string
	Document *declaration.Declaration
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

// Compose makes one declaration of the parts, in their order. Ids become
// MODULE/ID, wherever they stand; nothing else of a resource is touched.
func Compose(node string, generation uint64, parts []Part) (*declaration.Declaration, []byte, error) {
	out := &declaration.Declaration{
		Schema: declaration.Schema, Name: node, Generation: generation, Resources: []declaration.Resource{},
	}
	var conflicts Conflicts
	by := map[string]string{}
	for _, p := range parts {
		for _, r := range p.Document.Resources {
			key := r.Key()
			if first, ok := by[key]; ok {
				conflicts = append(conflicts, Conflict{Key: key, First: first, Second: p.Module})
				continue
			}
			by[key] = p.Module
			r.ID = p.Module + "/" + r.ID
			r.After = prefixed(p.Module, r.After)
			r.RestartOn = prefixed(p.Module, r.RestartOn)
			out.Resources = append(out.Resources, r)
		}
	}
	if len(conflicts) > 0 {
		return nil, nil, conflicts
	}
	doc, err := out.Marshal()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot compose the declaration of %q: %w", node, err)
	}
	// Each part was valid; the whole may still be too large, or an id too long.
	if _, err := declaration.Parse(doc); err != nil {
		return nil, nil, fmt.Errorf("cannot compose the declaration of %q: %w", node, err)
	}
	return out, doc, nil
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

// validName is the rule of a declaration's name, which a module's may become.
func validName(s string) error {
	bad := s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-'
	for _, c := range s {
		bad = bad || (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
	}
	if bad {
		return fault.Usagef("cannot name a module %q: a name is a-z, 0-9 and '-', at most 63", s)
	}
	return nil
}
