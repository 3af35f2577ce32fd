package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

func aBench(t *testing.T) (*Engine, *atomic.Int32) {
	t.Helper()
	var late atomic.Int32
	return &Engine{Clock: clock.System, Log: slog.New(slog.DiscardHandler), Late: func() { late.Add(1) }}, &late
}

func keys(names string) []*job {
	var out []*job
	for n := range strings.FieldsSeq(names) {
		out = append(out, &job{key: n, typ: declaration.TypeProcess})
	}
	return out
}

// Two hundred files on a server that is gone: the last, which is elsewhere, does not
// wait for the patience of each.
func TestH08ManyThatHangDoNotHoldTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := aBench(t)
		wakes := make(chan struct{})
		jobs, start := keys("ok"), time.Now()
		for i := range 200 {
			jobs = append(keys(fmt.Sprintf("hangs%d", i)), jobs...)
		}
		var done time.Duration
		e.work(t.Context(), jobs, 2, func(_ context.Context, i int) error {
			if i == len(jobs)-1 {
				done = time.Since(start)
				return nil
			}
			<-wakes
			return nil
		})
		if patience := limits[declaration.TypeProcess].Patience; done > 10*time.Second || time.Since(start) > patience+10*time.Second {
			t.Errorf("the last was done after %v, all after %v", done, time.Since(start))
		}
		close(wakes)
		synctest.Wait()
	})
}

func TestH08OneThatHangsDoesNotHoldTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, late := aBench(t)
		wakes := make(chan struct{})
		jobs, start := keys("a hangs b"), time.Now()
		e.work(t.Context(), jobs, 1, func(_ context.Context, i int) error {
			if i == 1 {
				<-wakes // it does not heed its deadline either
			}
			return nil
		})
		patience := limits[declaration.TypeProcess].Patience
		if took := time.Since(start); took != patience {
			t.Errorf("the others waited %v", took)
		}
		if jobs[0].err != nil || jobs[2].err != nil || !errors.As(jobs[1].err, new(*leftError)) {
			t.Errorf("%v, %v, %v", jobs[0].err, jobs[1].err, jobs[2].err)
		}
		time.Sleep(3 * time.Minute)
		if b := e.Busy(); b == nil || b.Key != "hangs" || time.Since(b.Since) != patience+3*time.Minute || b.Seconds != 300 {
			t.Errorf("busy: %+v", b)
		}
		again := keys("hangs c")
		e.work(t.Context(), again, 1, func(_ context.Context, i int) error { return nil })
		if again[0].err == nil || !strings.Contains(again[0].err.Error(), "still being worked on, for 5m0s") || again[1].err != nil {
			t.Errorf("the next pass: %v, %v", again[0].err, again[1].err)
		}
		if late.Load() != 0 {
			t.Error("it is said to be over")
		}
		close(wakes)
		synctest.Wait()
		if e.Busy() != nil || late.Load() != 1 {
			t.Errorf("after it woke: busy %+v, said %d times", e.Busy(), late.Load())
		}
		again = keys("hangs")
		e.work(t.Context(), again, 1, func(context.Context, int) error { return nil })
		if again[0].err != nil {
			t.Error(again[0].err)
		}
	})
}

func TestH08ADeadlineEndsWhatHeedsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := aBench(t)
		e.Limits = map[declaration.Type]Limits{declaration.TypeProcess: {Patience: time.Hour, Deadline: time.Minute}}
		jobs, start := keys("a"), time.Now()
		e.work(t.Context(), jobs, 1, func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
		if !errors.Is(jobs[0].err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", jobs[0].err, time.Since(start))
		}
	})
}

func TestH13WhenTheHostEndsWhatIsInHandHasItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := aBench(t)
		pass, stop := context.WithCancel(t.Context())
		jobs, start := keys("done told deaf"), time.Now()
		var wakes = make(chan struct{})
		time.AfterFunc(time.Second, stop)
		e.work(pass, jobs, 3, func(ctx context.Context, i int) error {
			switch i {
			case 0:
				time.Sleep(Grace) // a second before the end of it
				return ctx.Err()
			case 1:
				<-ctx.Done()
				return ctx.Err()
			}
			<-wakes
			return nil
		})
		if jobs[0].err != nil || !errors.Is(jobs[1].err, context.Canceled) || !errors.As(jobs[2].err, new(*leftError)) {
			t.Errorf("%v, %v, %v", jobs[0].err, jobs[1].err, jobs[2].err)
		}
		if took := time.Since(start); took != time.Second+Grace+time.Second {
			t.Errorf("it took %v", took)
		}
		close(wakes)
	})
}

func TestOnlySoManyAtOnce(t *testing.T) {
	e, _ := aBench(t)
	var now, most atomic.Int32
	jobs := keys(strings.Repeat("x ", 1))
	for i := range 99 {
		jobs = append(jobs, &job{key: "k" + string(rune('0'+i))})
	}
	e.work(t.Context(), jobs, 4, func(context.Context, int) error {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		now.Add(-1)
		return nil
	})
	if most.Load() > 4 {
		t.Errorf("%d at once", most.Load())
	}
}
