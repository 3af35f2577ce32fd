package service

import (
	"strings"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/loop"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// A tally is what a service knows of its passes besides the last: how many there
// were, and since when what is not as declared is not. It is in memory and looks at
// nothing, so that who asks often costs nothing. Since when survives: it is in each
// report that is kept (link.ResourceReport.Since), and a report is kept whenever a
// resource ceases to be as declared, or is again.
type tally struct {
	mu      sync.Mutex
	started time.Time
	// beat is how often the watchdog is fed, and fed when it last was.
	beat time.Duration
	fed  time.Time
	// triggers counts what asked for passes, passes those that were made.
	triggers map[string]uint64
	passes   uint64
	broken   uint64 // of these could not be made, or not to their end
	total    time.Duration
	last     time.Duration
	ended    time.Time // the last
	good     time.Time // the last that found, or made, all as declared
	repaired uint64
	streaks  map[string]streak
	content  Content
}

// A streak is how long a resource has not been as declared.
type streak struct {
	since time.Time
	// passes is in how many passes in a row, of those that this service made.
	passes int
}

// triggers are those that a loop reports, each to be counted from nothing.
var triggers = []string{loop.TriggerStart, loop.TriggerDeclaration, loop.TriggerTimer, loop.TriggerReconnect,
	loop.TriggerPerson, loop.TriggerLate, loop.TriggerClock, triggerRetire}

// interruptedMark ends the trigger of a report that does not tell of all resources.
const interruptedMark = " (interrupted)"

// remember takes over what the reports of an earlier service say, the newest first.
func (t *tally) remember(reports []link.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.triggers, t.streaks = map[string]uint64{}, map[string]streak{}
	told := map[string]bool{}
	for i, report := range reports {
		for _, r := range report.Resources {
			if !told[r.Key] && !r.Outcome.Good() {
				t.streaks[r.Key] = streak{since: sinceOf(r, report)}
			}
			told[r.Key] = true
		}
		if !strings.HasSuffix(report.Trigger, interruptedMark) {
			reports = reports[i:]
			break
		}
	}
	for _, report := range reports {
		if flawless(report) && !strings.HasSuffix(report.Trigger, interruptedMark) {
			t.good = report.Finished
			break
		}
	}
}

// sinceOf is since when r is not as declared, as far as its report says.
func sinceOf(r link.ResourceReport, report link.Report) time.Time {
	if r.Since != nil {
		return *r.Since
	}
	return report.Finished
}

// date writes into the report of a pass since when what is not as declared is not,
// and keeps that in mind when the pass was made to its end.
func (t *tally) date(report *link.Report, whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := map[string]streak{}
	for i := range report.Resources {
		r := &report.Resources[i]
		if r.Outcome.Good() {
			continue
		}
		s, known := t.streaks[r.Key]
		if !known {
			s.since = report.Finished
		}
		s.passes++
		since := s.since
		now[r.Key], r.Since = s, &since
	}
	if whole {
		t.streaks = now
	}
}

// passed counts a pass; report is nil when there is none.
func (t *tally) passed(trigger string, took time.Duration, ended time.Time, report *link.Report, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for each := range strings.SplitSeq(trigger, "+") {
		t.triggers[each]++
	}
	t.passes++
	t.total += took
	t.last, t.ended = took, ended
	if err != nil {
		t.broken++
		return
	}
	if report == nil {
		return
	}
	for _, r := range report.Resources {
		if r.Outcome == declaration.Repaired {
			t.repaired++
		}
	}
	if flawless(*report) {
		t.good = ended
	}
}

// begun says that the service begins, and how often the watchdog is to be fed.
func (t *tally) begun(at time.Time, beat time.Duration) {
	t.mu.Lock()
	t.started, t.beat = at, beat
	t.mu.Unlock()
}

// since is when the service started.
func (t *tally) since() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.started
}

// feeding says that the watchdog is fed.
func (t *tally) feeding(at time.Time) {
	t.mu.Lock()
	t.fed = at
	t.mu.Unlock()
}

// weighed keeps in mind what the content store holds.
func (t *tally) weighed(c Content) {
	t.mu.Lock()
	t.content = c
	t.mu.Unlock()
}

// streak is how long a resource has not been as declared; zero when it was.
func (t *tally) streak(key string) streak {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.streaks[key]
}

func flawless(r link.Report) bool {
	for _, x := range r.Resources {
		if !x.Outcome.Good() {
			return false
		}
	}
	return true
}
