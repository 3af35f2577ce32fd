package fleet

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestFleet walks what the benchmark measures with a few hundred nodes: each
// step looks at what became of them, and none at a time.
func TestFleet(t *testing.T) {
	r := begin(t, 0)
	r.burst, r.probes = 100, 3
	step := func(name string, do func()) {
		if !t.Run(name, func(part *testing.T) { r.TB = part; do() }) {
			t.FailNow()
		}
		r.TB = t
	}
	step("a hundred enrol at once", r.enrolAtOnce)
	step("a hundred enrol", func() { r.enrolFlow(100) })
	step("links", func() { r.hold(r.usage(), 0) })
	step("all are told", func() { r.push(2) })
	step("one is told", r.pushOne)
	step("a real host applies", r.pushApplied)
	step("L-06 the own node, under load", r.own)
	step("L-12 revoking some", func() { r.revoke(5) })
	step("L-07 SIGTERM", func() { r.restart(syscall.SIGTERM, 2*time.Minute) })
	step("L-07 kill -9", func() { r.restart(syscall.SIGKILL, 2*time.Minute) })
	for _, row := range r.rows {
		t.Logf("%-52s %s", row[0], row[2])
	}
}

// BenchmarkFleet does so with as many as are asked for.
func BenchmarkFleet(b *testing.B) {
	for b.Loop() {
		r := begin(b, 1<<30)
		r.burst, r.probes = min(1000, *nodes), 100
		bare := r.usage()
		r.row("RSS, no node", "", "%s", mib(bare.RSS))
		r.floor()
		r.enrolAtOnce()
		r.enrolFlow(min(2*r.burst, *nodes-r.burst))
		r.enrolRest(*nodes - len(r.crowd.Nodes))
		r.hold(bare, 130*time.Second) // a collection comes after two minutes at the latest
		r.push(5)
		r.pushOne()
		r.pushApplied()
		r.own()
		r.revoke(min(100, *nodes/10))
		r.restart(syscall.SIGTERM, 10*time.Minute)
		r.restart(syscall.SIGKILL, 10*time.Minute)
		r.print()
		fmt.Println()
	}
}
