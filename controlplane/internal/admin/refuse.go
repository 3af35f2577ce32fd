package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/door"
)

// A Refusal turns a pending machine down.
type Refusal struct {
	Ref    string `json:"ref"`
	Reason string `json:"reason,omitempty"`
}

// NodeRefused is a machine that is refused. Already is true when it was earlier.
type NodeRefused struct {
	Node
	Already bool `json:"already"`
}

// Refuse is the verb.
var Refuse = door.Verb[Refusal, NodeRefused]{Name: "refuse", Again: true}

func (d *Desk) refuse(_ context.Context, q Refusal) (out NodeRefused, err error) {
	n, already, err := d.Office.Refuse(q.Ref, q.Reason)
	if err != nil {
		return out, err
	}
	if !already {
		d.Log.Info("machine is refused", "node", n.ID, "hostname", n.Profile.Hostname)
	}
	out.Already = already
	out.Node, err = d.node(n.ID)
	return out, err
}

// A Rule is one of the operator's rules of admission. When are the conditions, all
// of which must hold.
type Rule struct {
	Decision string   `json:"decision"`
	When     []string `json:"when"`
	Reason   string   `json:"reason,omitempty"`
}

func (d *Desk) rules() []Rule {
	out := []Rule{}
	for _, r := range d.Office.Policy {
		out = append(out, Rule{string(r.Decision), r.When(), r.Reason})
	}
	return out
}

// lingers is how long a grant may take to go before a person is told.
const lingers = 10 * time.Second

// stillGranted warns of what revoked nodes still hold, a line for each provider.
func (d *Desk) stillGranted(tx *state.Tx) (warnings []string, err error) {
	gs, err := tx.Grants()
	if err != nil {
		return nil, err
	}
	for len(gs) > 0 {
		first, n, oldest := gs[0], 0, (*state.Grant)(nil)
		for len(gs) > 0 && gs[0].Provider == first.Provider {
			g := gs[0]
			gs = gs[1:]
			if g.State != state.Revoking || g.Error == "" && d.now().Sub(g.Since) < lingers {
				continue
			}
			if n++; oldest == nil || g.Since.Before(oldest.Since) {
				oldest = g
			}
		}
		if n == 0 {
			continue
		}
		w := fmt.Sprintf("%s not taken away at %q, the oldest for %s", cli.Count(n, "grant is", "grants are"), first.Provider, cli.Span(d.now().Sub(oldest.Since)))
		if oldest.Error != "" {
			w += ": " + oldest.Error
		}
		warnings = append(warnings, w)
	}
	return warnings, nil
}
