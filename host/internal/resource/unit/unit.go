// Package unit is the kind of resource that is a unit of systemd: its file, its
// drop-ins, whether it is enabled, active or masked.
//
// # What is as declared
//
// The files are read from the disk, the rest is asked of systemd over its
// private socket; no command is run and no exit code trusted. What the
// declaration says nothing about is left as it is. A unit whose text is declared
// has the links that its [Install] section says, no more and no fewer, and the
// drop-ins that are declared, no others: one that somebody puts into a directory
// of his (/etc, /run) changes what was declared, so it is drift. It is moved
// aside, as NAME.conf.nox-saved, which systemd does not read, and never deleted:
// whoever wrote it had a reason, and what it said is not lost. A drop-in that
// another resource of the host owns (a file with a secret) belongs there, and so
// do those that a package or a generator brings.
//
// A mask is the administrator's word. Unless the declaration says something of
// masked, a masked unit is held: nothing is done about it, and the report says
// by what it is masked.
//
// # The order
//
// Files first, then links, then one daemon-reload, then jobs. Units that are
// applied at the same time share the daemon-reload: all write, one reloads, each
// starts (Together). systemd orders the jobs by what the units say themselves.
//
// What a change does to a unit that runs is on_change's to say. That it is due is
// written down first (pending.go), so a host that is killed in between does it
// at the next pass.
//
// # What it waits for
//
// A job, until systemd says how it ended, but no longer than jobTime; the result
// is told in systemd's own words. What is started and not up after that is left
// to systemd, which goes on. A unit that systemd keeps starting anew is as
// declared and failing, which is no drift: only a person's word, or a change,
// starts it once more. A connection that ends in the middle (daemon-reexec) is
// made again and what was asked is asked again.
//
// # What it gives back
//
// State.Found holds the files that were there, and how the unit was. Remove
// deletes what the host wrote, puts those back, and leaves a unit that is not
// the host's as it was found. What somebody made of a file is kept aside.
//
// What survives a crash: every step looks first, so the next Apply or Remove
// does what was left to do.
//
// # What it does not do
//
// Nothing below a root that is not the machine's, where no systemd is in charge:
// unsupported. The links of a unit whose text is not declared are the business
// of who wrote it: it is enabled or it is not.
package unit

import (
	"context"
	"os"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// Content is where the text of units lies by its digest.
type Content interface {
	// Read returns the content, of at most max bytes, hashed again.
	Read(d digest.Digest, max int64) ([]byte, error)
}

// Records is what the host owns.
type Records interface {
	Records() ([]resource.Record, error)
}

// Config is what a Kind needs.
type Config struct {
	Layout  layout.Layout
	Content Content
	Records Records
}

// Kind implements resource.Kind for units.
type Kind struct {
	Config
	systemd manager
	// why says why there is no service manager to ask, or is "".
	why func() string
	// jobTime is how long all jobs of one Apply or Remove are waited for.
	jobTime time.Duration
	// gathering is what several calls share that are made together, or nil.
	gathering *gathering
}

var _ resource.Kind = (*Kind)(nil)

// New returns the kind.
func New(c Config) *Kind {
	return &Kind{Config: c, systemd: &client{}, jobTime: jobTime, why: func() string { return without(c.Layout) }}
}

// without says why there is no systemd to ask, as sd_booted(3) does.
func without(l layout.Layout) string {
	if !l.IsMachine() {
		return "the root is a directory: no service manager is in charge of it"
	}
	if fi, err := os.Lstat("/run/systemd/system"); err != nil || !fi.IsDir() {
		return "systemd does not run here"
	}
	return ""
}

// Together returns the kind for n calls of Apply, no more and no less, that are
// made at the same time and share a daemon-reload.
func (k *Kind) Together(n int) resource.Kind {
	c := *k
	c.gathering = gather(n, k.systemd.reload)
	return &c
}

// supported is an error of the type resource.Unsupported where there is no
// systemd.
func (k *Kind) supported(context.Context) error {
	if why := k.why(); why != "" {
		return resource.Unsupported{Why: why}
	}
	return nil
}
