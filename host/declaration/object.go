package declaration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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
type faults struct {
	list []Fault
	said map[string]bool
}

// maxFaults bounds what is told of a hopeless document.
const maxFaults = 100

func (f *faults) add(path, format string, args ...any) {
	if len(f.list) < maxFaults {
		f.list = append(f.list, Fault{path, fmt.Sprintf(format, args...)})
	}
}

// once is add for a single value: of a value that is wrong, whatever else is
// wrong with it only confuses.
func (f *faults) once(path, format string, args ...any) {
	if f.said[path] {
		return
	}
	if f.said == nil {
		f.said = map[string]bool{}
	}
	if f.full() {
		return
	}
	f.said[path] = true
	f.add(path, format, args...)
}

func (f *faults) full() bool { return len(f.list) >= maxFaults }

// object is the members of one JSON object, and which of them were asked for;
// the others are not known (end says so).
type object struct {
	path    string
	faults  *faults
	members []member
	asked   []bool
	// recorded: it is a Spec, which names content by its digest alone.
	recorded bool
}

// newObject returns nil, and says so, when v is no object.
func newObject(v any, path string, f *faults) *object {
	ms, ok := v.([]member)
	if !ok {
		f.once(path, "is not an object")
		return nil
	}
	return &object{path: path, faults: f, members: ms, asked: make([]bool, len(ms))}
}

func (o *object) at(name string) at { return at{o.faults, o.path, name} }

func (o *object) fault(name, format string, args ...any) {
	o.at(name).fault(format, args...)
}

func (o *object) index(name string) int {
	return slices.IndexFunc(o.members, func(m member) bool { return m.name == name })
}

func (o *object) has(name string) bool { return o.index(name) >= 0 }

func (o *object) get(name string) (any, bool) {
	i := o.index(name)
	if i < 0 {
		return nil, false
	}
	o.asked[i] = true
	return o.members[i].value, true
}

// given are those of the names that are there.
func (o *object) given(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !o.has(name) })
}

func (o *object) end() {
	for i, m := range o.members {
		if !o.asked[i] {
			o.fault(m.name, "is not known")
		}
	}
}

// join is the JSON path of a member.
func join(path, name string) string {
	switch plain := !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}); {
	case name == "":
		return path
	case !plain:
		return path + "[" + shown(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// shown quotes a text of the document for a fault, cut where it helps nobody.
func shown(s string) string {
	const most = 100
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "") + "…")
	}
	return strconv.Quote(s)
}
