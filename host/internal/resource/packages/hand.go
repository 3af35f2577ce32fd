package packages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/command"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// A hand is the paper on what the manager was given to do: there as long as
// nobody saw it end well.
type hand struct {
	// Why it is still there, for people.
	Why string `json:"why"`
	// What was there before.
	Installed bool     `json:"installed"`
	Version   string   `json:"version,omitempty"`
	Files     []string `json:"files,omitempty"`
}

const (
	interrupted  = "the package manager was interrupted"
	endedBadly   = "the package manager failed half way"
	handSuffix   = ".hand"
	maxHand      = 64 << 20
	privateMode  = 0o700
	privateFiles = 0o600
)

// private is where what is handed over lies meanwhile.
func (k *Kind) private() string { return filepath.Join(k.Layout.HostState(), "packages") }

func (k *Kind) handFile(name string) string { return filepath.Join(k.private(), name+handSuffix) }

// hand is the paper of a package, or nil.
func (k *Kind) hand(name string) (*hand, error) {
	b, err := database.ReadFile(k.handFile(name), maxHand)
	if err != nil || b == nil {
		return nil, err
	}
	h := hand{}
	if err := json.Unmarshal(b, &h); err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", k.handFile(name), err)
	}
	return &h, nil
}

func (h *hand) before() *database.Package {
	if h == nil {
		return nil
	}
	p := &database.Package{Installed: h.Installed, Version: h.Version}
	for _, f := range h.Files {
		p.Files = append(p.Files, database.File{Path: f})
	}
	return p
}

// mend makes good what an interrupted run left, of ours or of others, and
// returns what is there now.
func (k *Kind) mend(ctx context.Context, name string) (database.Package, error) {
	is, err := k.Manager.Look(name)
	if err != nil {
		return is, err
	}
	hand, err := k.hand(name)
	if err != nil || hand == nil && is.Broken == "" {
		return is, err
	}
	if err := k.Manager.Mend(ctx, name, hand.before()); err != nil {
		return is, err
	}
	return k.Manager.Look(name)
}

// handOver lets the manager work, with a paper on what was there. An older paper
// stays: what it says was there was there when the trouble began.
func (k *Kind) handOver(name string, before database.Package, work func() error) error {
	h, err := k.hand(name)
	if err != nil {
		return err
	}
	if h == nil {
		h = &hand{Why: interrupted, Installed: before.Installed, Version: before.Version}
		for _, f := range before.Files {
			h.Files = append(h.Files, f.Path)
		}
		if err := k.write(name, h); err != nil {
			return err
		}
	}
	if err := work(); err != nil {
		if errors.As(err, new(command.Interrupted)) {
			return err
		}
		// It ended by itself and said that it failed. If it touched anything
		// that is not done, the next run begins where this one did.
		if is, lookErr := k.Manager.Look(name); lookErr == nil && k.asBefore(h, is) {
			return errors.Join(err, k.drop(name))
		}
		h.Why = endedBadly
		return errors.Join(err, k.sweep(name), k.write(name, h))
	}
	return k.drop(name)
}

// asBefore: by the database nothing was done.
func (k *Kind) asBefore(h *hand, is database.Package) bool {
	return is.Broken == "" && is.Installed == h.Installed && (!is.Installed || is.Version == h.Version)
}

func (k *Kind) write(name string, h *hand) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(k.private(), privateMode); err != nil {
		return err
	}
	return durable.WriteFile(k.handFile(name), b, privateFiles)
}

// drop throws away the paper, and what was handed over.
func (k *Kind) drop(name string) error {
	return errors.Join(k.sweep(name), durable.Remove(k.handFile(name)))
}

// Recover throws away what a killed host left when nothing came of it: the
// paper on a manager that never began.
func (k *Kind) Recover(_ context.Context, r declaration.Resource) error {
	if r.Package == nil || k.choose() != "" {
		return nil
	}
	name := r.Package.Name
	h, err := k.hand(name)
	if err != nil || h == nil || h.Why != interrupted {
		return err
	}
	l, err := k.Manager.Lock()
	if err != nil || l.By != "" {
		return err
	}
	is, err := k.Manager.Look(name)
	if err != nil || !k.asBefore(h, is) {
		return err
	}
	return k.drop(name)
}
