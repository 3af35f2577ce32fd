package admin

import (
	"context"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

const (
	shownReports = 5
	keptReports  = 20
	maxEvents    = 10_000
)

// line is a node as `nodes` prints it; seen is when it was last heard of as far
// as that was written.
func (d *Desk) line(n *state.Node, seen time.Time) Node {
	if at := d.Wire.Seen.At(n.ID); !at.IsZero() {
		seen = at
	}
	return Node{
		ID: n.ID, Name: n.Name, Hostname: n.Profile.Hostname, Tags: n.Tags, State: d.stateOf(n), Conflict: n.Conflict,
		Wanted: n.Wanted.Generation, Applied: n.Applied.Generation, Failed: n.Applied.Failed,
		Version: n.Applied.Version, Installed: n.Applied.Installed, LastSeen: seen,
	}
}

func (d *Desk) stateOf(n *state.Node) string {
	switch {
	case n.State == state.Admitted:
		return "enrolling"
	case n.State == state.Enrolled && !d.Wire.Links.Connected(n.ID):
		return "disconnected"
	}
	return string(n.State)
}

func (d *Desk) nodes(context.Context, None) ([]Node, error) {
	out := []Node{}
	err := d.Office.Store.View(func(tx *state.Tx) error {
		ns, err := tx.Nodes()
		if err != nil {
			return err
		}
		for _, n := range ns {
			out = append(out, d.line(n, tx.Seen(n.ID)))
		}
		return nil
	})
	return out, err
}

func (d *Desk) show(_ context.Context, q Ref) (out NodeDetail, err error) {
	err = d.Office.Store.View(func(tx *state.Tx) error {
		n, err := admission.FindNode(tx, q.Ref)
		if err != nil {
			return err
		}
		out = NodeDetail{
			Node: d.line(n, tx.Seen(n.ID)), Key: n.Key, Decision: n.Decision, Declaration: n.Wanted.Digest, Profile: n.Profile,
		}
		if out.Modules, err = module.On(tx, n); err != nil {
			return err
		}
		if out.Inventory, err = tx.Inventory(n.ID); err != nil {
			return err
		}
		reports, err := tx.Reports(n.ID, keptReports)
		if err != nil {
			return err
		}
		out.Failing = failing(reports)
		out.Reports = reports[:min(len(reports), shownReports)]
		return nil
	})
	return out, err
}

// failing lists what the newest report says is not as declared, and since when
// the reports before it say the same.
func failing(reports []*state.Report) []Failing {
	out := []Failing{}
	if len(reports) == 0 {
		return out
	}
	bad := func(r *state.Report) map[string]Failing {
		m := map[string]Failing{}
		for _, x := range r.Report.Resources {
			if !x.Outcome.Good() {
				m[x.Key] = Failing{Key: x.Key, Outcome: string(x.Outcome), Error: x.Error, Since: r.At}
			}
		}
		return m
	}
	now := bad(reports[0])
	open := map[string]bool{}
	for k := range now {
		open[k] = true
	}
	for _, r := range reports[1:] {
		then := bad(r)
		for k := range open {
			if _, ok := then[k]; !ok {
				delete(open, k)
				continue
			}
			f := now[k]
			f.Since = r.At
			now[k] = f
		}
	}
	for _, x := range reports[0].Report.Resources {
		if f, ok := now[x.Key]; ok {
			out = append(out, f)
		}
	}
	return out
}

func (d *Desk) events(_ context.Context, q Limit) (out []*state.Event, err error) {
	if q.Limit < 1 || q.Limit > maxEvents {
		q.Limit = maxEvents
	}
	err = d.Office.Store.View(func(tx *state.Tx) error {
		es, err := tx.Events(q.Limit)
		out = append([]*state.Event{}, es...)
		return err
	})
	return out, err
}

func (d *Desk) status(context.Context, None) (Status, error) {
	s := Status{
		Version: version.Running(), Mesh: d.Office.Authority.Mesh(), Pin: d.Office.Authority.Pin(),
		Listen: d.Served.String(), Links: d.Wire.Links.Count(), Nodes: map[string]int{}, Modules: []*state.Module{},
	}
	as, err := d.addresses()
	if err != nil {
		return s, err
	}
	s.Addresses = as.Addresses
	err = d.Office.Store.View(func(tx *state.Tx) error {
		m, err := tx.Mesh()
		if err != nil {
			return err
		}
		s.Epoch = m.Epoch
		ns, err := tx.Nodes()
		if err != nil {
			return err
		}
		for _, n := range ns {
			s.Nodes[d.stateOf(n)]++
		}
		ms, err := tx.Modules()
		if len(ms) > 0 {
			s.Modules = ms
		}
		return err
	})
	return s, err
}
