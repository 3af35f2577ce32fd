package declaration

import (
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
	if err != nil {
		return nil, refuse([]Fault{{Text: err.Error()}})
	}
	f := &faults{}
	o, ok := newObject(v, "", f)
	if !ok {
		return nil, refuse(f.list)
	}
	d := &Declaration{}
	if !o.has("schema") {
		f.add("schema", "is missing")
	}
	// A newer schema may mean any of the rest differently: say only that.
	if d.Schema = int(o.number("schema", Schema, 1, math.MaxInt32)); d.Schema > Schema {
		return nil, refuse([]Fault{{Path: "schema", Text: fmt.Sprintf("%d is newer than the %d this version reads", d.Schema, Schema)}})
	}
	d.Name = o.need("name")
	if d.Name != "" && !validName(d.Name) {
		f.add("name", "%q is not a name (a-z, 0-9, '-', at most 63)", d.Name)
	}
	d.Generation = o.number("generation", 0, 0, math.MaxInt64)
	d.Resources = parseResources(o)
	o.end()
	checkReferences(d, f)
	checkOwn(d, f)
	if len(f.list) > 0 {
		return nil, refuse(f.list)
	}
	return d, nil
}

func refuse(list []Fault) error {
	return fault.Refusedf("declaration is not valid: %w", &Invalid{list})
}

func parseResources(o *object) []Resource {
	v, ok := o.get("resources")
	if !ok {
		o.fault("resources", "is missing")
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		o.fault("resources", "is not a list")
		return nil
	}
	if len(list) > MaxResources {
		o.fault("resources", "are %d, more than the %d allowed", len(list), MaxResources)
		return nil
	}
	out := make([]Resource, 0, len(list))
	for i, e := range list {
		if len(o.faults.list) >= maxFaults {
			break // nobody mends more at once
		}
		ro, ok := newObject(e, fmt.Sprintf("resources[%d]", i), o.faults)
		if !ok {
			continue
		}
		if r, ok := parseResource(ro); ok {
			out = append(out, r)
		}
	}
	return out
}

// parseResource returns false when the type is not known: nothing can then be
// said of the other members.
func parseResource(o *object) (Resource, bool) {
	r := Resource{ID: o.need("id"), Type: Type(o.need("type"))}
	if r.ID != "" && !validID(r.ID) {
		o.fault("id", "%q is not an id (letters, digits, '.', '_', '-', '/', at most 200)", r.ID)
	}
	r.After = o.texts("after")
	r.TakeOver = o.flag("take_over")
	switch r.Type {
	case TypeFile:
		r.File = parseFile(o)
	case TypeProcess:
		r.RestartOn = o.texts("restart_on")
		r.Process = parseProcess(o)
	case "":
		return r, false
	default:
		o.fault("type", "%q is not a type this version knows (file, process)", r.Type)
		return r, false
	}
	o.end()
	return r, true
}
