package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

const (
	shownReports = 5
	keptReports  = 20
	maxEvents    = 10_000
)

// line is a node as `nodes` prints it.
func (d *Desk) line(tx *state.Tx, n *state.Node) (Node, error) {
	m, err := tx.Mesh()
	if err != nil {
		return Node{}, err
	}
	return Node{
		ID: n.ID, Name: n.Name, Hostname: n.Profile.Hostname, Tags: n.Tags, State: d.stateOf(tx, n),
		Connected: d.Wire.Links.Connected(n.ID), Conflict: n.Conflict, Hold: n.Hold,
		Wanted: n.Wanted.Generation, Applied: n.Applied.Generation, Behind: d.Wire.BehindSince(n, m.Epoch), Failed: n.Applied.Failed,
		Version: n.Applied.Version, Installed: n.Applied.Installed, LastSeen: d.seen(tx, n),
	}, nil
}

// seen is when a node was last heard of, zero if it never connected.
func (d *Desk) seen(tx *state.Tx, n *state.Node) time.Time {
	for _, at := range []time.Time{d.Wire.Seen.At(n.ID), tx.Seen(n.ID)} {
		if !at.IsZero() {
			return at
		}
	}
	return n.Applied.At // when that was not written
}

func (d *Desk) stateOf(tx *state.Tx, n *state.Node) string {
	switch {
	case n.State == state.Admitted:
		return "enrolling"
	case n.Hold != nil:
		return string(n.Hold.Kind)
	case n.State == state.Enrolled && !d.Wire.Links.Connected(n.ID) && !d.seen(tx, n).IsZero():
		return "disconnected"
	}
	return string(n.State)
}

func (d *Desk) node(id string) (out Node, err error) {
	err = d.Office.Store.View(func(tx *state.Tx) error {
		n, err := tx.Node(id)
		if err != nil {
			return err
		}
		out, err = d.line(tx, n)
		return err
	})
	return out, err
}

// nodes are sorted by name; those without one come last.
func (d *Desk) nodes(context.Context, None) ([]Node, error) {
	out := []Node{}
	err := d.Office.Store.View(func(tx *state.Tx) error {
		ns, err := tx.Nodes()
		if err != nil {
			return err
		}
		for _, n := range ns {
			l, err := d.line(tx, n)
			if err != nil {
				return err
			}
			out = append(out, l)
		}
		orphans, err := d.orphans(tx)
		out = append(out, orphans...)
		return err
	})
	slices.SortFunc(out, func(a, b Node) int {
		if (a.Name == "") != (b.Name == "") {
			return strings.Compare(b.Name, a.Name)
		}
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Hostname, b.Hostname), strings.Compare(a.ID, b.ID))
	})
	return out, err
}

func (d *Desk) show(_ context.Context, q Ref) (out NodeDetail, err error) {
	err = d.Office.Store.View(func(tx *state.Tx) error {
		n, orphan, err := d.find(tx, q.Ref)
		if orphan != nil {
			out = *orphan
		}
		if n == nil {
			return err
		}
		out = NodeDetail{Key: n.Key, Decision: n.Decision, Declaration: n.Wanted.Digest, Profile: n.Profile}
		if out.Node, err = d.line(tx, n); err != nil {
			return err
		}
		if out.Modules, err = module.On(tx, n); err != nil {
			return err
		}
		if out.Inventory, err = tx.Inventory(n.ID); err != nil {
			return err
		}
		if out.Loses, err = loses(tx, n); err != nil {
			return err
		}
		grants, err := tx.GrantsOf(n.ID)
		if err != nil {
			return err
		}
		out.Grants = append([]*state.Grant{}, grants...)
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

// events are the newest that there are, the newest last.
func (d *Desk) events(_ context.Context, q Limit) (out []*state.Event, err error) {
	if q.Limit < 1 || q.Limit > maxEvents {
		q.Limit = maxEvents
	}
	err = d.Office.Store.View(func(tx *state.Tx) error {
		es, err := tx.Events(q.Limit)
		out = append([]*state.Event{}, es...)
		slices.Reverse(out)
		return err
	})
	return out, err
}

func (d *Desk) status(context.Context, None) (Status, error) {
	s := Status{
		Version: version.Running(), Mesh: d.Office.Authority.Mesh(), Pin: d.Office.Authority.Pin(),
		Listen: d.Served.String(), Links: d.Wire.Links.Count(), Nodes: map[string]int{}, Modules: []*state.Module{}, Pushed: []*state.Pushed{},
		Admission: d.rules(),
	}
	as, err := d.addresses()
	if err != nil {
		return s, err
	}
	s.Addresses = as.Addresses
	if s.Content.Blobs, s.Content.Bytes, err = d.Content.Size(); err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	if err := d.Collector.Err(); err != nil {
		s.Warnings = append(s.Warnings, fmt.Sprintf("content that nobody needs is not thrown away: %v", err))
	}
	var faults []error
	s.Repository, faults = d.repository()
	for _, err := range faults {
		s.Warnings = append(s.Warnings, err.Error())
	}
	err = d.Office.Store.View(func(tx *state.Tx) error {
		m, err := tx.Mesh()
		if err != nil {
			return err
		}
		s.Epoch, s.Restored = m.Epoch, m.Restored
		ns, err := tx.Nodes()
		if err != nil {
			return err
		}
		for _, n := range ns {
			s.Nodes[d.stateOf(tx, n)]++
		}
		orphans, err := d.orphans(tx)
		if err != nil {
			return err
		}
		if len(orphans) > 0 {
			s.Nodes[Orphan] = len(orphans)
		}
		s.Warnings = append(s.Warnings, waiting(tx, ns, orphans)...)
		still, err := d.stillGranted(tx)
		if err != nil {
			return err
		}
		s.Warnings = append(s.Warnings, still...)
		ms, err := tx.Modules()
		if len(ms) > 0 {
			s.Modules = ms
		}
		if err != nil {
			return err
		}
		ps, err := tx.AllPushed()
		if len(ps) > 0 {
			s.Pushed = ps
		}
		return err
	})
	return s, err
}
