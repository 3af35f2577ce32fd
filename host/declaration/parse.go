package declaration

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Invalid is the error of Parse: everything that is wrong with the document.
type Invalid struct{ Faults []Fault }

// Error puts all faults on one line.
func (e *Invalid) Error() string {
	var s []string
	for _, f := range e.Faults {
		s = append(s, f.String())
	}
	return strings.Join(s, "; ")
}

// Parse reads a declaration strictly. A document that is not valid is refused
// whole: the error wraps *Invalid and is of kind fault.Refused.
func Parse(doc []byte) (*Declaration, error) {
	v, err := decode(doc)
	var m *misplaced
	switch {
	case errors.As(err, &m):
		return nil, refuse([]Fault{{m.path, m.text}})
	case err != nil:
		return nil, refuse([]Fault{{Text: err.Error()}})
	}
	f := &faults{}
	o := newObject(v, "", f)
	if o == nil {
		return nil, refuse(f.list)
	}
	d := &Declaration{}
	fields := d.fields()
	// A newer schema may mean any of the rest differently: say only that.
	if o.read(fields[:1]); d.Schema > Schema {
		return nil, refuse([]Fault{{Path: "schema", Text: fmt.Sprintf("%d is newer than the %d this version reads", d.Schema, Schema)}})
	}
	o.read(fields[1:])
	o.end()
	checkReferences(d, f)
	checkPrograms(d, f)
	checkOwn(d, f)
	if len(f.list) > 0 {
		return nil, refuse(f.list)
	}
	return d, nil
}

func (d *Declaration) fields() []field {
	return []field{
		{"schema", schemaNumber{number[int]{&d.Schema, Schema, 1, math.MaxInt32}}, true, "The version of this kind of document."},
		{"name", text[string]{&d.Name, nameRule, ""}, true, "What the declaration is called."},
		{"generation", number[uint64]{&d.Generation, 0, 0, math.MaxInt64}, false, "Grows with each change: an older one is refused where a newer one was."},
		{"resources", resources{&d.Resources}, true, "What the machine shall have, in the order it is applied in. What the host owns and this does not name is removed."},
	}
}

// schemaNumber is read whatever it is, to tell a newer one.
type schemaNumber struct{ number[int] }

func (schemaNumber) schema() node { return node{"const": Schema} }

func refuse(list []Fault) error {
	return fault.Refusedf("declaration is not valid: %w", &Invalid{list})
}

type resources struct{ to *[]Resource }

func (r resources) read(a at, v any) {
	list, ok := v.([]any)
	if !ok {
		a.fault("is not a list")
		return
	}
	if len(list) > MaxResources {
		a.fault("are %d, more than the %d allowed", len(list), MaxResources)
		return
	}
	*r.to = make([]Resource, len(list))
	for i, e := range list {
		if a.faults.full() {
			break // nobody mends more at once
		}
		if o := a.element(i).object(e); o != nil {
			(*r.to)[i] = parseResource(o)
		}
	}
}

func (r resources) unset() { *r.to = nil }

func (r resources) write() any {
	out := make([]map[string]any, 0, len(*r.to))
	for i := range *r.to {
		out = append(out, (*r.to)[i].members())
	}
	return out
}

// parseResource says nothing of the other members when the type is not known.
func parseResource(o *object) Resource {
	var r Resource
	fields := r.fields()
	o.read(fields[:2])
	k, ok := kinds[r.Type]
	if !ok {
		return r
	}
	o.read(k.takes(fields)[2:])
	b := k.make(&r)
	o.read(b.fields())
	o.end()
	b.check(o)
	return r
}
