// Package packages is the kind "package": a package of the machine's package
// manager.
//
// # What it promises
//
// What is installed is read from the manager's database and checked against the
// files, never asked; a look starts no process. A package whose file was cut,
// replaced or lost is not as declared, and is installed again; so is one that
// the manager was interrupted at, whoever killed it. A package is good when the
// database and the files say so, whatever the manager's exit status was: pacman
// returns 0 over a file that it could not replace.
//
// A file is hashed when it is first looked at, and again when its size, a time
// or its inode changed; what was seen is remembered as long as the host runs.
//
// What comes from the content store is copied to a private place and hashed on
// the way; the copy is verified (its signature where the manager wants one, its
// name and version) and is what the manager gets. A damaged blob is thrown away
// and never handed over.
//
// Nothing is forced. A lock that somebody holds is waited for and never broken;
// one that a dead process left is taken away (alone.go). A package that the
// administrator holds (IgnorePkg, apt-mark hold) is held. Configuration that
// somebody changed stays; what the manager put beside it is in the note.
//
// # What survives a crash
//
// The manager outlives the host (command.Run). Before it is started, what is
// there is written down (hand.go), and the paper is thrown away when it was seen
// to end well. While it lies there the package is not as declared, and the next
// Apply first mends what was left. A run that ended well after the host died is
// so done once more, which changes nothing.
//
// # What it does not promise
//
// Owner, mode and times of packaged files are the manager's affair, and whatever
// a scriptlet makes of them. An administrator who removes a configuration file
// has removed it. Whether a package of the repositories is newer than what is
// installed is not asked when no version is declared.
package packages

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Manager is a package manager. Its methods that take a context run it; it
// has no lock then that another holds.
type Manager interface {
	// Name is how it is called in what people read.
	Name() string
	// Suffix is how the name of a package's file must end.
	Suffix() string
	// WantsSignature: a package comes with a detached signature, which it finds
	// beside it (trust.PackageSignatureSuffix).
	WantsSignature() bool
	// Look reads what the database says of a package. It starts no process.
	Look(name string) (database.Package, error)
	// Lock says who holds the database now. It starts no process.
	Lock() (database.Lock, error)
	// Describe says which package the file is.
	Describe(ctx context.Context, file string) (name, version string, err error)
	// Mend makes of what an interrupted run left of a package something that
	// Install and Remove can work on. before is what was there as that run
	// began, or nil.
	Mend(ctx context.Context, name string, before *database.Package) error
	// Install installs the file; or, without one, the version ("" is any) from
	// where the machine gets packages. What is there is installed over. A run
	// that did not end by itself is a command.Interrupted.
	Install(ctx context.Context, name, version, file string) error
	// Remove removes the package and nothing else.
	Remove(ctx context.Context, name string) error
}

// Config is what a Kind needs.
type Config struct {
	Layout  layout.Layout
	Content Content
	Clock   clock.Clock
	// Manager is the machine's; with nil the kind picks it when it is needed.
	Manager Manager
	// Trust is who may sign packages; nil is whom the machine trusts.
	Trust func() (*trust.Policy, error)
	// Failed says why the host's own package, in this version or from this source
	// ("" if it is not known), is not to be installed: it was, and could not live
	// here. It is "" for every other; nil when none ever failed.
	Failed func(version string, source digest.Digest) string
}

// A Kind applies package resources.
type Kind struct {
	Config
	choosing sync.Mutex
	seen     *seen
	// turn has one token: a manager works alone.
	turn chan struct{}
	// patience is how long a lock is waited for, tick how often it is looked at.
	patience, tick time.Duration

	mu sync.Mutex
	// versions are those of sources whose declaration says none, by digest.
	versions map[digest.Digest]string
}

var _ resource.Kind = (*Kind)(nil)

// New makes the kind.
func New(c Config) *Kind {
	if c.Trust == nil {
		c.Trust = func() (*trust.Policy, error) { return trust.Machine(c.Layout) }
	}
	return &Kind{
		Config: c, seen: newSeen(c.Clock), turn: make(chan struct{}, 1), patience: time.Minute, tick: 500 * time.Millisecond,
		versions: map[digest.Digest]string{},
	}
}

// Apply implements resource.Kind.
func (k *Kind) Apply(ctx context.Context, want resource.Want, _ *resource.Record, found resource.State) error {
	p := want.Resource.Package
	switch {
	case found.Same:
		return nil // never once more: the file of a running host would be replaced
	case found.Foreign && !want.Resource.TakeOver:
		return fault.Failedf("package %q exists and is not ours", p.Name).Hint(`remove it, or declare "take_over": true`)
	}
	if err := k.alone(ctx, p.Name, func() error { return k.install(ctx, p) }); err != nil {
		return fmt.Errorf("cannot install package %q: %w", p.Name, err)
	}
	return nil
}

func (k *Kind) install(ctx context.Context, p *declaration.Package) error {
	before, err := k.mend(ctx, p.Name)
	if err != nil {
		return err
	}
	file, version := "", p.Version
	if p.Source != "" {
		if file, version, err = k.take(ctx, p); err != nil {
			return errors.Join(err, k.sweep(p.Name))
		}
	}
	err = k.handOver(p.Name, before, func() error { return k.Manager.Install(ctx, p.Name, version, file) })
	if err == nil && file != "" {
		k.know(p.Source, version)
	}
	return err
}
