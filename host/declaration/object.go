package declaration

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Fault is one thing that is wrong with a document.
type Fault struct {
	// Path is the JSON path, such as "resources[3].mode"; empty for the whole.
	Path string `json:"path"`
	Text string `json:"text"`
}

func (f Fault) String() string {
	if f.Path == "" {
		return f.Text
	}
	return f.Path + ": " + f.Text
}

// faults collects what is wrong, so that a person can mend all at once.
type faults struct{ list []Fault }

// maxFaults bounds what is told of a hopeless document.
const maxFaults = 100

func (f *faults) add(path, format string, args ...any) {
	if len(f.list) < maxFaults {
		f.list = append(f.list, Fault{path, fmt.Sprintf(format, args...)})
	}
}

// object reads the members of one JSON object; what is not asked for is an
// unknown field (end says so).
type object struct {
	path   string
	faults *faults
	values map[string]any
	order  []string
	asked  map[string]bool
}

func newObject(v any, path string, f *faults) (*object, bool) {
	ms, ok := v.([]member)
	if !ok {
		f.add(path, "is not an object")
		return nil, false
	}
	o := &object{path: path, faults: f, values: map[string]any{}, asked: map[string]bool{}}
	for _, m := range ms {
		o.values[m.name] = m.value
		o.order = append(o.order, m.name)
	}
	return o, true
}

func (o *object) at(name string) string { return join(o.path, name) }

func (o *object) fault(name, format string, args ...any) {
	o.faults.add(o.at(name), format, args...)
}

func (o *object) has(name string) bool {
	_, ok := o.values[name]
	return ok
}

func (o *object) get(name string) (any, bool) {
	o.asked[name] = true
	v, ok := o.values[name]
	return v, ok
}

// text returns the string at name, def when it is not there.
func (o *object) text(name, def string) string {
	v, ok := o.get(name)
	if !ok {
		return def
	}
	s, ok := v.(string)
	if !ok {
		o.fault(name, "is not a string")
		return def
	}
	return s
}

// need is text for a member that must be there and not empty.
func (o *object) need(name string) string {
	if !o.has(name) {
		o.asked[name] = true
		o.fault(name, "is missing")
		return ""
	}
	s := o.text(name, "")
	if _, isText := o.values[name].(string); isText && s == "" {
		o.fault(name, "is empty")
	}
	return s
}

func (o *object) flag(name string) bool {
	v, ok := o.get(name)
	if !ok {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		o.fault(name, "is not true or false")
	}
	return b
}

// number returns the whole number at name, def when it is not there.
func (o *object) number(name string, def, lo, hi uint64) uint64 {
	v, ok := o.get(name)
	if !ok {
		return def
	}
	n, ok := v.(json.Number)
	if !ok {
		o.fault(name, "is not a number")
		return def
	}
	u, err := strconv.ParseUint(n.String(), 10, 64)
	if err != nil || u < lo || u > hi {
		o.fault(name, "%s is not a whole number from %d to %d", n, lo, hi)
		return def
	}
	return u
}

func (o *object) texts(name string) []string {
	v, ok := o.get(name)
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		o.fault(name, "is not a list")
		return nil
	}
	out := make([]string, 0, len(list))
	for i, e := range list {
		s, ok := e.(string)
		if !ok {
			o.fault(fmt.Sprintf("%s[%d]", name, i), "is not a string")
			continue
		}
		out = append(out, s)
	}
	return out
}

func (o *object) end() {
	for _, name := range o.order {
		if !o.asked[name] {
			o.fault(name, "is not known")
		}
	}
}
