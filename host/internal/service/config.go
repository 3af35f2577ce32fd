package service

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// Settings is host.toml, the administrator's file. All of it is optional.
type Settings struct {
	// ReconcileInterval is how long the host lets drift stand, at most.
	ReconcileInterval time.Duration `toml:"reconcile_interval"`
}

// DefaultInterval bounds drift by something a person would notice anyway, and
// keeps a fleet from doing constant work.
const DefaultInterval = 10 * time.Minute

// maxSettings bounds host.toml, in bytes.
const maxSettings = 1 << 20

// ReadSettings reads the file at path; one that is not there is all defaults.
func ReadSettings(path string) (Settings, error) {
	s := Settings{ReconcileInterval: DefaultInterval}
	b, err := input.ReadFile(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("cannot read configuration: %w", err)
	}
	meta, err := toml.Decode(string(b), &s)
	if err != nil {
		return s, fault.Refusedf("cannot read configuration %q: %w", path, err)
	}
	if extra := meta.Undecoded(); len(extra) > 0 {
		return s, fault.Refusedf("cannot read configuration %q: %q is not known", path, extra[0].String())
	}
	if s.ReconcileInterval < time.Second {
		return s, fault.Refusedf("cannot read configuration %q: reconcile_interval %s is less than a second", path, s.ReconcileInterval)
	}
	return s, nil
}
