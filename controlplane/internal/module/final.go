package module

import (
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
)

// Final makes the last declaration of a node, which declares nothing, and writes it
// to n, which the caller puts.
func Final(tx *state.Tx, now time.Time, n *state.Node) error {
	s, err := load(tx, now)
	if err != nil {
		return err
	}
	c, err := s.compose(nil)
	if err == nil {
		err = c.impossible
	}
	if err != nil {
		return err
	}
	doc, err := c.stamp(n.Name, n.Wanted.Generation+1)
	if err != nil {
		return err
	}
	n.Conflict = ""
	return s.succeed(n, c.composition, doc)
}
