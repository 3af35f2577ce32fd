// Package declaration is what a host is told: the JSON document that says what
// a machine shall have.
//
// A declaration is complete: what the host owns and the document does not name
// is removed. It is parsed strictly (Parse): an unknown field, a duplicate key
// or id, trailing data, a wrong type, a cycle or a missing reference refuses
// the document whole, and all faults are reported at once, each with its JSON
// path. A Declaration that came out of Parse is valid; nothing downstream
// checks again.
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
	Schema int    `json:"schema"`
	Name   string `json:"name"`
	// Generation orders declarations of one name within an epoch.
	Generation uint64     `json:"generation"`
	Resources  []Resource `json:"resources"`
}

// Type is a kind of resource.
type Type string

// The types this version knows.
const (
	TypeFile    Type = "file"
	TypeProcess Type = "process"
)

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

	File    *File
	Process *Process
}

// A File is a regular file, a symlink or a directory. Exactly one of Content,
// Source, Target and Directory is given.
type File struct {
	// Path is absolute and clean.
	Path string
	// Content is the text of the file; nil when another member says what it is.
	Content *string
	// Source is the digest of the content in the content store.
	Source digest.Digest
	// Target makes it a symlink.
	Target string
	// Directory makes it a directory.
	Directory bool
	// Mode is the permission bits with setuid, setgid and sticky; 0644 for a
	// file, 0600 for a secret one and 0755 for a directory when the document
	// says nothing.
	Mode uint32
	// Owner and Group are a name, or a number that needs no account; root when
	// the document says nothing.
	Owner, Group string
	// Secret content is never printed, logged or reported.
	Secret bool
}

// Restart says when a process that ended is started again.
type Restart string

// The restart policies.
const (
	RestartAlways    Restart = "always"
	RestartOnFailure Restart = "on-failure"
	RestartNever     Restart = "never"
)

// Run says what a process is.
type Run string

// The ways to run.
const (
	// RunService is kept up.
	RunService Run = "service"
	// RunOnce runs to completion once per content of its definition.
	RunOnce Run = "once"
)

// A Process is a program the host keeps running, under the shim.
type Process struct {
	Name string
	// Command is the program, absolute, and its arguments.
	Command []string
	Env     map[string]string
	// User is a name, or a number that needs no account; root when the
	// document says nothing.
	User             string
	WorkingDirectory string
	Restart          Restart
	Run              Run
	// SuccessCodes are exit statuses that count as success; [0] by default.
	SuccessCodes []int
	// StopSignal is a name such as "SIGTERM", the default.
	StopSignal string
	// StopTimeout is how long the process may take to stop, in seconds; 10 by
	// default.
	StopTimeout int
	// FailureLimit is how many failures in a row halt it; 5 by default.
	FailureLimit int
}

// Key names the thing on the machine a resource is about, whatever its id:
// "file:/etc/motd", "process:web". Two resources with one key are in conflict.
func (r *Resource) Key() string {
	switch r.Type {
	case TypeFile:
		return "file:" + r.File.Path
	case TypeProcess:
		return "process:" + r.Process.Name
	}
	panic("internal error: a resource of unknown type " + string(r.Type))
}

// Sources returns the digests of the content the declaration needs, without
// repetition, in the order of first mention.
func (d *Declaration) Sources() []digest.Digest {
	var out []digest.Digest
	seen := map[digest.Digest]bool{}
	for _, r := range d.Resources {
		if r.File != nil && r.File.Source != "" && !seen[r.File.Source] {
			seen[r.File.Source] = true
			out = append(out, r.File.Source)
		}
	}
	return out
}
