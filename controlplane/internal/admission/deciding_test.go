package admission

import "github.com/nox-mesh/nox-mesh/controlplane/internal/state"

// Deciding has f called right before a node is decided on, in that transaction.
func (o *Office) Deciding(f func(*state.Tx, *state.Node)) { o.deciding = f }
