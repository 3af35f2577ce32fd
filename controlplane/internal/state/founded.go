package state

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Founded is the file mesh.json beside the state: which mesh this machine is the
// control plane of. Should the state be lost, it says that there was one; a new
// mesh in its place would lock every node out.
type Founded struct {
	Mesh string `json:"mesh"`
	// Pin is that of the mesh root.
	Pin string `json:"pin"`
}

// ReadFounded returns what the file at path says, and nil when there is none. A
// file that cannot be understood says only that there was a mesh.
func ReadFounded(path string) (*Founded, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Failedf("cannot read which mesh this is: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil {
		return nil, fault.Failedf("cannot read which mesh this is: %w", err)
	}
	known := new(Founded)
	if json.Unmarshal(b, known) != nil || known.Mesh == "" || known.Pin == "" {
		return new(Founded), nil
	}
	return known, nil
}
