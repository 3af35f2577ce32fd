package unit

import (
	"encoding/json"
	"fmt"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// A found is resource.State.Found: what was there, to be given back.
type found struct {
	// Files are those that the host was about to replace or to move away, by
	// path.
	Files map[string]thing `json:"files,omitempty"`
	// Folder: there was one for drop-ins.
	Folder bool `json:"folder,omitempty"`
	// Known: systemd had such a unit, in that state of its file, and it ran.
	Known   bool   `json:"known,omitempty"`
	Enabled string `json:"enabled,omitempty"`
	Active  bool   `json:"active,omitempty"`
}

func foundIn(before json.RawMessage) (f found, err error) {
	if len(before) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(before, &f); err != nil {
		return f, fmt.Errorf("cannot read what was there before: %w", err)
	}
	return f, nil
}

// raw is nil when there is nothing to give back.
func (f found) raw() (json.RawMessage, error) {
	if len(f.Files) == 0 && !f.Folder && !f.Known {
		return nil, nil
	}
	return json.Marshal(f)
}

// wasDeclared is the unit as it was declared when it was applied last.
func wasDeclared(prior *resource.Record) (*declaration.Unit, found, error) {
	if prior == nil {
		return nil, found{}, nil
	}
	r, err := declaration.FromSpec("recorded", prior.Spec)
	if err != nil {
		return nil, found{}, err
	}
	before, err := foundIn(prior.Before)
	return r.Unit, before, err
}
