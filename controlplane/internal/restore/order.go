package restore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/backup"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// The names beside the state.
const (
	stagingName = "restored.new"
	readyName   = "restored"
	orderName   = "restore.json"
	formerName  = "former-"
	contentName = "content"
	lockName    = ".lock"
)

func staging(l layout.Layout) string     { return filepath.Join(l.ControllerState(), stagingName) }
func ready(l layout.Layout) string       { return filepath.Join(l.ControllerState(), readyName) }
func foundedPath(l layout.Layout) string { return filepath.Join(l.ControllerState(), backup.Founded) }

// An Order is in restored/: what is taken up, and under which name what was there
// is set aside.
type Order struct {
	Mesh string `json:"mesh"`
	// Backup is when the backup was made, At when it was staged.
	Backup time.Time `json:"backup"`
	At     time.Time `json:"at"`
	// Epoch is the one it begins with.
	Epoch  uint64 `json:"epoch"`
	Former string `json:"former"`
}

// Waiting returns what waits to be taken up, nil for nothing.
func Waiting(l layout.Layout) (*Order, error) {
	path := filepath.Join(ready(l), orderName)
	b, err := input.ReadFile(path, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Failedf("cannot read what a restore laid down: %w", err)
	}
	o := new(Order)
	if json.Unmarshal(b, o) != nil || o.Mesh == "" || o.Epoch == 0 || filepath.Base(o.Former) != o.Former || o.Former == "." || o.Former == ".." {
		return nil, fault.Refusedf("cannot take up what a restore laid down: %q is damaged", path).
			Hint("run `mesh-controller restore FILE` again, after %q is moved elsewhere", ready(l))
	}
	return o, nil
}

func (o *Order) write(dir string) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(dir, orderName), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot write what is to be taken up: %w", err)
	}
	return nil
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
