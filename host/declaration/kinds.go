package declaration

import (
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// The types this version knows.
const (
	TypeFile      Type = "file"
	TypePackage   Type = "package"
	TypeUnit      Type = "unit"
	TypeContainer Type = "container"
	TypeProcess   Type = "process"
)

// kinds is the only list of the types.
var kinds = map[Type]kind{
	TypeFile:      {in(func(r *Resource) **File { return &r.File }), false},
	TypePackage:   {in(func(r *Resource) **Package { return &r.Package }), false},
	TypeUnit:      {in(func(r *Resource) **Unit { return &r.Unit }), true},
	TypeContainer: {in(func(r *Resource) **Container { return &r.Container }), true},
	TypeProcess:   {in(func(r *Resource) **Process { return &r.Process }), true},
}

// A kind is one type of resource.
type kind struct {
	place
	// restarts: it takes restart_on.
	restarts bool
}

// A body is what a resource says besides what all of them do. Until the whole
// document is known to be valid its members may be missing or wrong; a fault of
// theirs is told then, and check, claims and own need not tell it again.
type body interface {
	// fields lists the members, and where they go.
	fields() []field
	// check holds the rules between members, and fills in what stands for one
	// that is not there because of another.
	check(o *object)
	// rules is what the JSON Schema says of the whole: a description, and as
	// much of check as it can.
	rules() node
	// name is the thing's among those of its type, "" when it is not said.
	name() string
	// claims are what it takes for itself besides, each spelled as the Key of
	// the resource that is about that.
	claims() []string
	sources() []digest.Digest
	// own says which members touch what is the host's own.
	own(own []layout.Own, say func(member, why string))
}

// place is where in a resource a body is.
type place struct {
	make func(*Resource) body
	get  func(*Resource) body
}

func in[T any, B interface {
	*T
	body
}](at func(*Resource) *B) place {
	return place{
		make: func(r *Resource) body { b := B(new(T)); *at(r) = b; return b },
		get:  func(r *Resource) body { return *at(r) },
	}
}

func (r *Resource) body() body {
	k, ok := kinds[r.Type]
	if !ok {
		panic("internal error: a resource of unknown type " + string(r.Type))
	}
	return k.get(r)
}

// knownTypes are sorted.
func knownTypes() []Type { return slices.Sorted(maps.Keys(kinds)) }

var typeRule = func() *rule {
	r := words(knownTypes()...)
	r.what = "a type this version knows"
	return r
}()

// fields are those that resources have whatever they are about; the last one is
// for those types only that take it.
func (r *Resource) fields() []field {
	return []field{
		{"id", text[string]{&r.ID, idRule, ""}, true, "Names the resource within this declaration; after and restart_on refer to it."},
		{"type", text[Type]{&r.Type, typeRule, ""}, true, "What kind of thing it is."},
		{"after", texts{to: &r.After, rule: idRule}, false, "Ids of resources that must be as declared before this one is applied. If one of them fails, this one is skipped."},
		{"take_over", flag{&r.TakeOver}, false, "Own a thing of that name that is there already and not as declared. Without it that is a conflict, but for a file: one of at most 64 MiB is kept, and given back when it is declared no more."},
		{"restart_on", texts{to: &r.RestartOn, rule: idRule}, false, "Ids of resources whose change restarts this one."},
	}
}

func (k kind) takes(fields []field) []field {
	if !k.restarts {
		return fields[:len(fields)-1]
	}
	return fields
}
