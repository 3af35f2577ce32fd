// Package file is the kind of resource that is a regular file, a symlink or a
// directory.
//
// # What it promises
//
// A name changes from the old thing to the new in one rename; a kill or a power
// cut at any instant leaves one of the two, whole. The bits of the mode are
// exact whatever the umask, and no one who may not read the new file can read
// it, or write to it, while it is being made. What is at the name is replaced
// itself and never written through: a symlink's target, another name of the
// same inode and the reader of an open descriptor keep what they had. Content
// whose digest is not the one wanted is never put in place, whatever the
// content store gave. The content of a file is looked at on every pass, so an
// edit in the same second and of the same size is found.
//
// A directory, fifo, socket or device is never replaced by anything, a file or
// a symlink never by a directory; the error names what is there.
//
// # The way to a file
//
// Paths are walked below the layout's root and cannot leave it. A symlink on
// the way is followed only when root made it (or the ordinary user the host
// runs as) and it lies where nobody else may write; see walk.go. Parent
// directories that are missing are made, 0755 and root's, and remembered:
// Remove takes away those that are empty again.
//
// What is the host's own is not touched, however it is reached; see own.go.
//
// # What failed here
//
// A program may be put back by the shim of its process (host/internal/supervise).
// Content that failed so is held: it is not laid down again until other content was
// declared for the path. What the shim put there is the host's own work, and goes as
// if it had been laid down here.
//
// # What it gives back
//
// Before the host replaces a file that was there, its content goes into the
// content store (at most MaxKept bytes), and State.Found says what it was.
// Remove puts that back with mode and owner. Whoever collects garbage in the
// content store must keep what References names.
//
// The extended attributes, ACL and capabilities of a replaced file are kept on
// the new one, when they were set by someone who may be trusted with it; State.Note
// says which will not be.
//
// # What it does not promise
//
// As an ordinary user it neither applies nor compares owner and group. Names of
// accounts are read from /etc/passwd and /etc/group alone: accounts of a
// directory service need their number. A hand edit that the host undoes is
// gone; only what was there before the host came is kept, and what somebody
// made of a file that is no longer declared. The ACL a directory gives to new
// files is left to work as its owner meant.
package file

import (
	"context"
	"io"
	"os"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// MaxKept is the size, in bytes, of the largest file that is kept so that it
// can be given back. A larger one is replaced only when the resource says
// take_over, and is then gone.
const MaxKept = 64 << 20

// Content is where content lies by its digest.
type Content interface {
	// Open opens the content for reading. It may be damaged: it is hashed on
	// the way.
	Open(digest.Digest) (*os.File, error)
	// Drop throws away content that was found to be damaged, so that it is
	// fetched again.
	Drop(digest.Digest) error
	// Add keeps what r gives, durably, unless it is more than max bytes.
	Add(ctx context.Context, r io.Reader, max int64) (digest.Digest, int64, error)
}

// Config is what a Kind needs.
type Config struct {
	Layout  layout.Layout
	Content Content
	// Vet returns why content is not to be put at path: the host's own program is
	// tried before the one that runs is replaced. nil: anything may.
	Vet func(ctx context.Context, path string, d digest.Digest) error
	// Failed says how content failed here as the program at path, or "". It is
	// asked of what is not as declared; nil: nothing ever failed.
	Failed func(path string, d digest.Digest) (why string)
	// Restored reports whether it was the host that put content back at path, in
	// place of what failed there; nil: it never did.
	Restored func(path string, d digest.Digest) bool
}

// Kind implements resource.Kind for files.
type Kind struct {
	layout   layout.Layout
	content  Content
	vet      func(ctx context.Context, path string, d digest.Digest) error
	failed   func(path string, d digest.Digest) (why string)
	restored func(path string, d digest.Digest) bool
	// root says that owners can be set.
	root bool
	euid uint32
	// making is one for all views of a Kind.
	making *sync.Mutex
	// barrier is what several calls share that are made together, or nil.
	barrier *durable.Barrier
	// chart is what several calls share that are made soon after each other; nil
	// when each looks for itself.
	chart *chart
}

// New returns the kind.
func New(c Config) *Kind {
	euid := os.Geteuid()
	return &Kind{
		layout: c.Layout, content: c.Content, vet: c.Vet, failed: c.Failed, restored: c.Restored,
		root: euid == 0, euid: uint32(euid), making: &sync.Mutex{},
	}
}

// Together returns the kind for n calls of Apply or Remove, no more and no
// less, that are made at the same time and share what makes them durable.
func (k *Kind) Together(n int) resource.Kind {
	c := *k
	c.barrier, c.chart = durable.NewBarrier(n), k.survey()
	return &c
}

// Surveyed returns the kind for calls of Check or Review that are made soon
// after each other and share a look at where the host's own is.
func (k *Kind) Surveyed() resource.Kind {
	c := *k
	c.chart = k.survey()
	c.chart.known = map[inode]whereabouts{}
	return &c
}

// leave ends a call's part in the barrier.
func (k *Kind) leave() {
	if k.barrier != nil {
		k.barrier.Leave()
	}
}
