package admin

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Client speaks to the control plane of this machine.
type Client = door.Client

// NewClient returns a client of the socket at path.
func NewClient(path string) *Client {
	// Whether there is, or was, a control plane on this machine.
	settled := func() bool {
		_, err := os.Stat(filepath.Dir(path))
		return err == nil
	}
	return &Client{Path: path, Waits: settled, Tell: func(u *door.Unanswered) error { return explain(u, path, settled()) }}
}

func explain(u *door.Unanswered, path string, settled bool) error {
	switch {
	case u.How == door.Absent && settled:
		// It ran here: what keeps it up is to be looked at, and a second one beside
		// that would only be in its way.
		return fault.Failedf("cannot reach the control plane: nothing answers on %q", path).
			Hint("it is kept up by mesh-host: see `mesh-host status`, or `systemctl status nox-mesh-controller`")
	case u.How == door.Absent:
		return fault.Failedf("cannot reach the control plane: nothing answers on %q", path).
			Hint("start it with `mesh-controller serve`")
	case u.How == door.NotAllowed:
		return fault.Failedf("cannot reach the control plane: it speaks to root and its own user only").
			Hint("run it with sudo")
	case u.How == door.Strange:
		return fmt.Errorf("cannot understand the control plane: %w; is it of another version?", u.Err)
	}
	return fmt.Errorf("cannot reach the control plane: %w", u.Err)
}
