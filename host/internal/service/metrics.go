package service

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/link/client"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/metrics"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// mostTold bounds how many resources have figures of their own: each is a series
// that somebody keeps for months.
const mostTold = 100

var outcomes = []declaration.Outcome{declaration.Unchanged, declaration.Applied, declaration.Adopted, declaration.Repaired, declaration.Removed,
	declaration.Released, declaration.Held, declaration.Failed, declaration.Skipped, declaration.Unsupported}

// Metrics implements Host. It tells what is known and looks at nothing, so that it
// costs no more than a walk over the last report, and answers while a resource hangs.
// What a service counts since it started has no figures where none runs.
func (s *Service) Metrics(context.Context) ([]metrics.Family, error) {
	s.mu.Lock()
	last, id, l := s.last, s.identity, s.link
	s.mu.Unlock()
	var m metrics.Set
	m.Begin(metrics.Gauge, "mesh_host_build_info", "The version of mesh-host that answers; always 1.")
	m.Add(1, "version", version.Running())
	m.One(metrics.Gauge, "mesh_host_up", "Whether the service runs (1), or the command had to look for itself (0).", metrics.Truth(s.served))
	node := id != nil && id.Stage == client.StageActive
	m.One(metrics.Gauge, "mesh_host_enrolled", "Whether this machine is a node of a mesh.", metrics.Truth(node))
	if s.served {
		s.tellPasses(&m)
	}
	s.tellResources(&m, last)
	if l != nil {
		tellLink(&m, l.State())
	}
	err := s.tellStores(&m)
	return m.Families, err
}

// tellPasses tells what is counted since the service started.
func (s *Service) tellPasses(m *metrics.Set) {
	t := &s.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	m.At("mesh_host_start_timestamp_seconds", "When the service started.", t.started)
	m.Begin(metrics.Counter, "mesh_host_passes_total", "Passes by what asked for them; several may ask for one.")
	for _, trigger := range triggers {
		m.Add(float64(t.triggers[trigger]), "trigger", trigger)
	}
	m.Begin(metrics.Summary, "mesh_host_pass_duration_seconds", "How long passes took.")
	m.Sum(t.total.Seconds(), t.passes)
	m.One(metrics.Counter, "mesh_host_passes_broken_total", "Passes that could not be made, or not to their end.", float64(t.broken))
	if t.passes > 0 {
		m.One(metrics.Gauge, "mesh_host_last_pass_duration_seconds", "How long the last pass took.", t.last.Seconds())
	}
	m.At("mesh_host_last_pass_timestamp_seconds", "When the last pass ended.", t.ended)
	m.One(metrics.Counter, "mesh_host_drift_repaired_total", "Resources of which drift was undone.", float64(t.repaired))
	if t.beat > 0 {
		m.One(metrics.Gauge, "mesh_host_watchdog_interval_seconds", "How often the watchdog of the service manager is fed.", t.beat.Seconds())
		m.At("mesh_host_watchdog_fed_timestamp_seconds", "When the watchdog was fed last.", t.fed)
	}
}

// tellResources tells how the last pass left the resources, and since when.
func (s *Service) tellResources(m *metrics.Set, last *link.Report) {
	t := &s.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	m.At("mesh_host_last_successful_pass_timestamp_seconds", "When the last known pass ended after which all was as declared.", t.good)
	if last == nil {
		return
	}
	count, off := map[declaration.Outcome]int{}, []link.ResourceReport{}
	for _, r := range last.Resources {
		if count[r.Outcome]++; !r.Outcome.Good() {
			off = append(off, r)
		}
	}
	m.Begin(metrics.Gauge, "mesh_host_resources", "Resources by their outcome in the last pass.")
	for _, o := range outcomes {
		m.Add(float64(count[o]), "outcome", string(o))
	}
	m.One(metrics.Gauge, "mesh_host_resources_not_as_declared", "Resources that the last pass left otherwise than declared.", float64(len(off)))
	off = off[:min(len(off), mostTold)]
	labels := func(r link.ResourceReport) []string {
		typ, _, _ := strings.Cut(r.Key, ":")
		return []string{"key", r.Key, "type", typ}
	}
	m.Begin(metrics.Gauge, "mesh_host_resource_not_as_declared", "The first "+strconv.Itoa(mostTold)+" of these, each 1, with its outcome.")
	for _, r := range off {
		m.Add(1, append(labels(r), "outcome", string(r.Outcome))...)
	}
	m.Begin(metrics.Gauge, "mesh_host_resource_not_as_declared_since_timestamp_seconds", "Since when each is not.")
	for _, r := range off {
		if since := t.streaks[r.Key].since; !since.IsZero() {
			m.Add(metrics.Seconds(since), labels(r)...)
		}
	}
	m.Begin(metrics.Gauge, "mesh_host_resource_not_as_declared_passes", "In how many passes in a row, since the service started.")
	for _, r := range off {
		m.Add(float64(t.streaks[r.Key].passes), labels(r)...)
	}
}

func tellLink(m *metrics.Set, l client.State) {
	m.One(metrics.Gauge, "mesh_host_link_connected", "Whether the link to the control plane is up.", metrics.Truth(l.Connected))
	m.At("mesh_host_link_since_timestamp_seconds", "Since when the link is as it is.", l.Since)
	m.One(metrics.Gauge, "mesh_host_link_revoked", "Whether the control plane took this node's credentials away.", metrics.Truth(l.Revoked != ""))
}

func (s *Service) tellStores(m *metrics.Set) error {
	queued, err := s.store.Queued()
	if err != nil {
		return err
	}
	m.One(metrics.Gauge, "mesh_host_reports_queued", "Reports that the control plane has not seen.", float64(queued))
	m.One(metrics.Gauge, "mesh_host_store_writable", "Whether what is done can be recorded; nothing is changed while it cannot.", metrics.Truth(s.store.Writable() == nil))
	if !s.served {
		s.weigh()
	}
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	m.One(metrics.Gauge, "mesh_host_content_blobs", "Blobs in the content store.", float64(s.tally.content.Blobs))
	m.One(metrics.Gauge, "mesh_host_content_bytes", "The size of all blobs in the content store.", float64(s.tally.content.Bytes))
	return nil
}

// scraped answers who asks for the text itself.
func (s *Service) scraped(w http.ResponseWriter, r *http.Request) {
	families, err := s.Metrics(r.Context())
	if err != nil {
		http.Error(w, fault.Failedf("cannot tell metrics: %w", err).Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", metrics.ContentType)
	_ = metrics.Write(w, families)
}
