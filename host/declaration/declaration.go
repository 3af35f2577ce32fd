// Package declaration is what a host is told: the JSON document that says what
// a machine shall have.
//
// A declaration is complete: what the host owns and the document does not name
// is removed. It is parsed strictly (Parse): an unknown field, a duplicate key
// or id, trailing data, a wrong type, a cycle, a missing reference, a thing that
// two resources claim or one that is the host's own refuses the document whole,
// and all faults are reported at once, each with its JSON path. A Declaration
// that came out of Parse is valid; nothing downstream checks again, but for what
// only the machine shows.
//
// A type of resource is one file: what it says (its fields, of which parser,
// writer and JSON Schema are made), its own rules, what it needs and what it
// claims. The map of them all is in kinds.go.
//
// The document is bytes to everyone who only carries it: it is signed, stored
// and sent as it was written.
package declaration

import "github.com/opencontainers/go-digest"

// Schema is the version of the document this program reads.
const Schema = 1

// MaxSize bounds the document, in bytes; MaxResources what it declares.
const (
	MaxSize      = 16 << 20
	MaxResources = 20000
)

// A Declaration says what a machine shall have.
type Declaration struct {
	Schema int
	Name   string
	// Generation orders declarations of one name within an epoch.
	Generation uint64
	Resources  []Resource
}

// Type is a kind of resource.
type Type string

// A Resource is one item of a declaration. Exactly the member of its type is
// set.
type Resource struct {
	// ID names the resource within its declaration.
	ID   string
	Type Type
	// After names resources that must be applied before this one.
	After []string
	// RestartOn names resources whose change restarts this one.
	RestartOn []string
	// TakeOver lets the host own a thing of that name that is there and not as
	// declared.
	TakeOver bool

	File      *File
	Package   *Package
	Unit      *Unit
	Container *Container
	Process   *Process
}

// Key names the thing on the machine a resource is about, whatever its id:
// "file:/etc/motd", "process:web". Two resources with one key are in conflict.
func (r *Resource) Key() string { return string(r.Type) + ":" + r.body().name() }

// Claims are what the resource takes for itself, its Key first: what is written
// for it has a path, what it starts has a name. Two resources with a claim in
// common are in conflict.
func (r *Resource) Claims() []string { return append([]string{r.Key()}, r.body().claims()...) }

// Sources returns the digests of the content the resource needs from the
// content store. That of an image is its manifest's, which names the rest.
func (r *Resource) Sources() []digest.Digest { return r.body().sources() }

// Sources returns the digests of the content the declaration needs, without
// repetition, in the order of first mention.
func (d *Declaration) Sources() []digest.Digest {
	var out []digest.Digest
	seen := map[digest.Digest]bool{}
	for i := range d.Resources {
		for _, s := range d.Resources[i].Sources() {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}
