package declaration

import (
	"fmt"
	"maps"
	"strings"
)

// A field is one member of an object in the document. Parse, Marshal and Schema
// are made of the same lists of fields: none can know one that another does not.
type field struct {
	name  string
	value value
	need  bool
	// about says what it is, to a person with an editor.
	about string
}

// A value is what a field holds, and where that goes.
type value interface {
	// read takes the value in the document, or says at a what is wrong with it.
	read(a at, v any)
	// unset takes what stands for a field that is not there.
	unset()
	// write returns what to write; nil leaves the field out.
	write() any
	schema() node
}

// read takes the fields out of the object.
func (o *object) read(fields []field) {
	for _, f := range fields {
		v, ok := o.get(f.name)
		switch {
		case ok:
			f.value.read(o.at(f.name), v)
			continue
		case f.need:
			o.fault(f.name, "is missing")
		}
		f.value.unset()
	}
}

// write puts the fields into members.
func write(fields []field, members map[string]any) {
	for _, f := range fields {
		if v := f.value.write(); v != nil {
			members[f.name] = v
		}
	}
}

// node is a part of a JSON Schema.
type node map[string]any

// shape is the JSON Schema of an object of these fields and no other.
func shape(fields []field) node {
	properties, required := node{}, []string{}
	for _, f := range fields {
		n := node{"title": title(f.name), "description": f.about}
		maps.Copy(n, f.value.schema())
		properties[f.name] = n
		if f.need {
			required = append(required, f.name)
		}
	}
	n := node{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		n["required"] = required
	}
	return n
}

func title(name string) string {
	return strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "_", " ")
}

// at is a place in the document.
type at struct {
	faults     *faults
	path, name string
}

func (a at) String() string { return join(a.path, a.name) }

func (a at) fault(format string, args ...any) {
	if !a.faults.full() {
		a.faults.once(a.String(), format, args...)
	}
}

// element is the place of an element of the list at a, key that of a member of
// the object there.
func (a at) element(i int) at     { return at{a.faults, fmt.Sprintf("%s[%d]", a, i), ""} }
func (a at) key(name string) at   { return at{a.faults, a.String(), name} }
func (a at) object(v any) *object { return newObject(v, a.String(), a.faults) }
