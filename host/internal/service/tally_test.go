package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// bad is a report of a pass in which these resources were not as declared.
func bad(at int64, trigger string, keys ...string) link.Report {
	r := link.Report{Trigger: trigger, Finished: time.Unix(at, 0)}
	for _, key := range keys {
		r.Resources = append(r.Resources, link.ResourceReport{Key: key, Outcome: declaration.Failed})
	}
	return r
}

func TestSinceIsThatOfTheFirstPassInARow(t *testing.T) {
	var s tally
	s.remember(nil)
	steps := []struct {
		bad  []string
		want string
	}{
		{[]string{"x"}, "x since 1 times 1"},
		{[]string{"x", "y"}, "x since 1 times 2, y since 2 times 1"},
		{[]string{"y"}, "y since 2 times 2"},
		{[]string{"x", "y"}, "x since 4 times 1, y since 2 times 3"},
		{nil, ""},
		{[]string{"y"}, "y since 6 times 1"},
	}
	for i, step := range steps {
		r := bad(int64(i+1), "timer", step.bad...)
		s.date(&r, true)
		if got := dated(&s, r); got != step.want {
			t.Errorf("pass %d: %s, want %s", i+1, got, step.want)
		}
	}
}

func dated(s *tally, r link.Report) (got string) {
	for i, x := range r.Resources {
		if i > 0 {
			got += ", "
		}
		got += fmt.Sprintf("%s since %d times %d", x.Key, x.Since.Unix(), s.streak(x.Key).passes)
		if k := s.streak(x.Key); !k.since.Equal(*x.Since) {
			got += fmt.Sprintf(" (%s)", k.since)
		}
	}
	return got
}

// What an earlier service kept is taken over; of one that was told to end in the
// middle of a pass, what it did not come to is in the report before.
func TestSinceOutlivesTheService(t *testing.T) {
	at := func(r link.Report, since int64) link.Report {
		for i := range r.Resources {
			then := time.Unix(since, 0)
			r.Resources[i].Since = &then
		}
		return r
	}
	var s tally
	s.remember([]link.Report{
		bad(9, "timer"+interruptedMark, "new"),
		at(bad(8, "timer", "old", "older"), 3),
		bad(7, "timer", "never"),
		{Finished: time.Unix(6, 0), Resources: []link.ResourceReport{{Key: "x", Outcome: declaration.Unchanged}}},
		{Finished: time.Unix(5, 0)},
	})
	r := bad(20, "start", "new", "old", "never")
	s.date(&r, true)
	if got, want := dated(&s, r), "new since 9 times 1, old since 3 times 1, never since 20 times 1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if s.good.Unix() != 6 {
		t.Errorf("the last that was good ended at %s", s.good)
	}
}

// TestAFailingResourceSaysSinceWhen walks a real host: nothing is written for it but
// what is news, and a host that starts again has not forgotten.
func TestAFailingResourceSaysSinceWhen(t *testing.T) {
	cfg := machine(t)
	s := working(t, cfg)
	if err := os.MkdirAll(cfg.Layout.Path("/srv/page"), 0o755); err != nil {
		t.Fatal(err)
	}
	first, err := s.Apply(t.Context(), page("a", "1"))
	if err != nil || first.Resources[0].Since == nil || !first.Resources[0].Since.Equal(first.Finished) {
		t.Fatalf("%+v, %v", first, err)
	}
	before := s.store.Writes()
	for range 4 {
		if _, err := s.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.store.Writes() - before; n != 0 {
		t.Errorf("%d pages written", n)
	}
	off := func(s *Service, times int) {
		t.Helper()
		st, err := s.Status(t.Context())
		if err != nil || len(st.Off) != 1 || !st.Off[0].Since.Equal(first.Finished) || st.Off[0].Times != times {
			t.Errorf("%+v, %v, want since %s, %d times", st.Off, err, first.Finished, times)
		}
	}
	off(s, 5)
	b, err := json.Marshal(must(s.Status(t.Context())).Off)
	var program []struct {
		Since time.Time
		Times int
	}
	if err = errors.Join(err, json.Unmarshal(b, &program)); err != nil || !program[0].Since.Equal(first.Finished) || program[0].Times != 5 {
		t.Errorf("%s, %v", b, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = working(t, cfg)
	off(s, 0)
	if _, err := s.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	off(s, 1)
	if err := os.Remove(cfg.Layout.Path("/srv/page")); err != nil {
		t.Fatal(err)
	}
	r, err := s.Pass(t.Context())
	if err != nil || r.Resources[0].Since != nil || len(must(s.Status(t.Context())).Off) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestTheWorstIsFirst(t *testing.T) {
	s := working(t, machine(t))
	off := s.told([]Off{{There: "unsupported"}, {There: "held"}, {There: drifted, Key: "1"}, {There: "skipped"}, {There: failing}, {There: drifted, Key: "2"}, {There: "failed"}, {There: unknown}, {There: "odd"}})
	got := ""
	for _, o := range off {
		got += o.There + o.Key + " "
	}
	if want := "failed failing unknown drifted1 drifted2 skipped held unsupported odd "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// beating is a service that works, and what it feeds its watchdog.
func beating(t *testing.T) (*Service, <-chan struct{}) {
	t.Helper()
	s, err := Open(t.Context(), machine(t))
	if err != nil {
		t.Fatal(err)
	}
	beats := make(chan struct{}, 1000)
	s.start(beat{every: time.Millisecond, alive: func() {
		select {
		case beats <- struct{}{}:
		default:
		}
	}})
	t.Cleanup(func() { s.Close() })
	return s, beats
}

// H-08: a resource that hangs starves no watchdog.
func TestH08TheWatchdogIsFedWhileAResourceHangs(t *testing.T) {
	s, beats := beating(t)
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	var hangs atomic.Bool
	end := make(chan struct{})
	s.engine.Kinds[declaration.TypeFile] = looking{check: func() (resource.State, error) {
		hangs.Store(true)
		<-end
		return resource.State{Same: true}, nil
	}}
	passed := make(chan error, 1)
	go func() { _, err := s.Pass(t.Context()); passed <- err }()
	for !hangs.Load() {
		<-time.After(time.Millisecond)
	}
	for len(beats) > 0 {
		<-beats
	}
	for n := range 20 {
		select {
		case <-beats:
		case <-time.After(20 * time.Second):
			t.Fatalf("starved after %d beats", n)
		}
	}
	select {
	case err := <-passed:
		t.Errorf("the pass did not hang: %v", err)
	default:
	}
	close(end)
	if err := <-passed; err != nil {
		t.Error(err)
	}
}

// And a service that is stuck is not taken for one that works: what feeds the
// watchdog takes the lock that each answer needs.
func TestTheWatchdogOfAServiceThatIsStuckStarves(t *testing.T) {
	s, beats := beating(t)
	<-beats
	s.mu.Lock() // and nobody gives it back
	for len(beats) > 0 {
		<-beats
	}
	starves := time.After(200 * time.Millisecond)
	for n, waits := 0, true; waits; {
		select {
		case <-beats:
			if n++; n > 1 { // one may have been on its way
				t.Fatalf("stuck, and %d beats more", n)
			}
		case <-starves:
			waits = false
		}
	}
	s.mu.Unlock()
	select {
	case <-beats:
	case <-time.After(20 * time.Second):
		t.Error("it moves again, and is not fed")
	}
}
