package client

import (
	"fmt"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/link"
)

func TestReportsAndInventoryAreSent(t *testing.T) {
	p, m := newPlane(t), newMachine()
	m.add("r1", "r2")
	running(t, p, m)
	next(t, p.streams, "the link")
	m.expect(t, "up")
	m.expect(t, "all sent")
	for _, want := range []string{link.PathReports, link.PathReports, link.PathInventory} {
		if got := next(t, p.posted, want); got != want {
			t.Errorf("posted %s, want %s", got, want)
		}
	}
	m.add("r3")
	m.expect(t, "all sent")
	if got := next(t, p.posted, "r3"); got != link.PathReports {
		t.Error("an inventory that did not change was posted")
	}
	m.mu.Lock()
	m.version = "1.1.0"
	m.mu.Unlock()
	m.add("r4")
	m.expect(t, "all sent")
	for _, want := range []string{link.PathReports, link.PathInventory} {
		if got := next(t, p.posted, want); got != want {
			t.Errorf("posted %s, want %s", got, want)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []string
	for _, r := range p.reports {
		ids = append(ids, r.ID)
	}
	if fmt.Sprint(ids) != "[r1 r2 r3 r4]" {
		t.Error("reports", ids)
	}
}

func TestReportIsKeptUntilItIsTakenAndTheLinkStays(t *testing.T) {
	p, m := newPlane(t), newMachine()
	p.set(func() { p.retry = "after 0 s" })
	running(t, p, m)
	next(t, p.streams, "the link")
	m.expect(t, "up")
	p.set(func() { p.refuse[link.PathReports] = link.StoreUnavailable })
	m.add("r1")
	next(t, p.refused, "a refusal")
	p.set(func() { delete(p.refuse, link.PathReports) })
	m.expect(t, "all sent")
	p.set(func() { p.drop[link.PathReports] = 1 })
	m.add("r2")
	m.expect(t, "all sent")
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := p.reports[len(p.reports)-1]; last.ID != "r2" {
		t.Error("reports", p.reports)
	}
	if len(m.events) != 0 {
		t.Error("the link went")
	}
}

func TestHopelessReportDoesNotKeepBackTheRest(t *testing.T) {
	p, m := newPlane(t), newMachine()
	p.set(func() { p.refuse[link.PathReports] = link.Refused })
	running(t, p, m)
	next(t, p.streams, "the link")
	m.expect(t, "up")
	m.add("r1")
	m.expect(t, "all sent")
}
