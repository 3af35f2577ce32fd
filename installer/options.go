package installer

import (
	"context"
	"io"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// An Owner knows how many resources the host owns on this machine.
type Owner interface {
	Owns(ctx context.Context) (int, error)
}

// A Passer asks the running host for a pass, in which it notices that its
// binary was replaced.
type Passer interface {
	Pass(ctx context.Context) error
}

// Options say what to install, and where.
type Options struct {
	Layout layout.Layout
	// From is the top folder of the unpacked floor tarball.
	From string
	// Prefix is where the software goes, as a path of the machine;
	// layout.FloorPrefix when empty.
	Prefix string
	// NoStart neither enables nor starts the service.
	NoStart bool
	// ExpectRoot is the SHA-256 (hex, with or without "sha256:") of a release
	// root that must be in the chain; empty expects nothing.
	ExpectRoot string
	// AllowOlder lets a tarball of an older version replace what is installed.
	AllowOlder bool
	// Out gets the lines for people; nil throws them away.
	Out io.Writer
	// Pass is asked when a running host was given a new binary; nil leaves it
	// to the host's own timer.
	Pass Passer
	// Wait bounds the wait for the service to answer; 0 is one minute.
	Wait time.Duration
}

// Summary is what Install did.
type Summary struct {
	Version string `json:"version"`
	// Binary is the path of the host, as a path of the machine.
	Binary string `json:"binary"`
	// Root is the fingerprint ("sha256:…") of the release root in force, and
	// RootVersion its number.
	Root        string `json:"root"`
	RootVersion int    `json:"root_version"`
	// First: the root was taken from the tarball, this machine knew none.
	First bool `json:"first"`
	// Changed are the files that were written, as paths of the machine.
	Changed []string `json:"changed"`
	// Kept are the files a person changed and which were left as they are.
	Kept []string `json:"kept,omitempty"`
	// Service is "started" when the service answers, "not started" when it was
	// not to be started, "none" when nothing here could start it.
	Service string `json:"service"`
}

// UninstallOptions say what to take away.
type UninstallOptions struct {
	Layout layout.Layout
	// Owner is asked whether the host still owns something; nil is a host that
	// owns nothing.
	Owner Owner
	// KeepResources leaves what the host owns on the machine, unmanaged.
	KeepResources bool
	// Purge takes the state away as well: store, identity, content.
	Purge bool
	// DryRun says what would be done, and does nothing.
	DryRun bool
	Out    io.Writer
}

// HandOverOptions say where a tarball's host makes way for a package's.
type HandOverOptions struct {
	Layout layout.Layout
	// Pass is asked when a host runs; nil leaves it to the host's own timer.
	Pass Passer
	Out  io.Writer
}

// UninstallSummary is what Uninstall or HandOver did, in paths of the machine.
type UninstallSummary struct {
	Removed []string `json:"removed"`
	// Kept are files that are not what was installed, and things that were
	// asked to stay.
	Kept []string `json:"kept,omitempty"`
}
