package loop

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a pass that takes a while and remembers why it ran.
type recorder struct {
	mu   sync.Mutex
	runs []string
	each time.Duration
}

func (r *recorder) pass(_ context.Context, trigger string) Result {
	r.mu.Lock()
	r.runs = append(r.runs, trigger)
	r.mu.Unlock()
	time.Sleep(r.each) // inside synctest's clock
	return Result{}
}

func (r *recorder) got() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.runs, " ")
}

func during(t *testing.T, r *recorder, f func(ctx context.Context, l *Loop)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := New(10*time.Minute, r.pass)
		var wg sync.WaitGroup
		wg.Go(func() { l.Run(ctx, 0, nil) })
		f(ctx, l)
		cancel()
		wg.Wait()
	})
}

func TestH05TriggersDuringAPassMakeOneMore(t *testing.T) {
	r := &recorder{each: time.Second}
	during(t, r, func(ctx context.Context, l *Loop) {
		l.Trigger(ctx, TriggerStart)
		synctest.Wait()
		for range 100 {
			l.Trigger(ctx, TriggerDeclaration)
			l.Trigger(ctx, TriggerReconnect)
		}
		time.Sleep(3 * time.Second)
		if got := r.got(); got != "start declaration+reconnect" {
			t.Errorf("passes: %s", got)
		}
	})
}

func TestH05AllTriggersAtOnceMakeOneMore(t *testing.T) {
	r := &recorder{each: 10*time.Minute + time.Second} // the timer comes while it runs
	during(t, r, func(ctx context.Context, l *Loop) {
		l.Trigger(ctx, TriggerStart)
		synctest.Wait()
		for _, trigger := range []string{TriggerStart, TriggerDeclaration, TriggerReconnect} {
			go l.Trigger(ctx, trigger)
			synctest.Wait()
		}
		time.Sleep(r.each + time.Second) // into the second; its own timer is not over
		if got := r.got(); got != "start start+declaration+reconnect+timer" {
			t.Errorf("passes: %s", got)
		}
	})
}

func TestTimerRunsWithinTheInterval(t *testing.T) {
	r := &recorder{}
	during(t, r, func(context.Context, *Loop) {
		time.Sleep(10*time.Minute + time.Second)
		if got := r.got(); got != "timer" {
			t.Errorf("passes in ten minutes: %s", got)
		}
	})
}

func TestH05PassWaitsForOneThatBeganAfterIt(t *testing.T) {
	r := &recorder{each: time.Second}
	during(t, r, func(ctx context.Context, l *Loop) {
		l.Trigger(ctx, TriggerStart)
		synctest.Wait()
		before := time.Now()
		l.Pass(ctx, TriggerPerson)
		if took := time.Since(before); took != 2*time.Second {
			t.Errorf("answered after %s", took)
		}
	})
}

func TestH13RunEndsAfterThePassInHand(t *testing.T) {
	r := &recorder{each: time.Minute}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := New(time.Hour, r.pass)
		ended := make(chan struct{})
		go func() { l.Run(ctx, 0, nil); close(ended) }()
		l.Trigger(ctx, TriggerStart)
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("Run returned while a pass ran")
		default:
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		<-ended
	})
}

func TestH08WatchdogIsFedWhileAPassHangs(t *testing.T) {
	r := &recorder{each: time.Hour}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		beats := 0
		l := New(2*time.Hour, r.pass)
		ended := make(chan struct{})
		go func() { l.Run(ctx, 10*time.Second, func() { beats++ }); close(ended) }()
		l.Trigger(ctx, TriggerStart)
		time.Sleep(time.Minute + time.Second)
		cancel()
		<-ended
		if beats != 6 {
			t.Errorf("%d beats in a minute", beats)
		}
	})
}

// What comes after a pass may end the loop: who waited has the answer by then, and
// keeps it.
func TestWhoWaitsIsAnsweredBeforeWhatComesAfter(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			l := New(time.Hour, func(context.Context, string) Result { return Result{} })
			l.After = cancel
			var wg sync.WaitGroup
			wg.Go(func() { l.Run(ctx, 0, nil) })
			if r := l.Pass(ctx, TriggerPerson); r.Err != nil {
				t.Errorf("the pass was made, and its answer is %v", r.Err)
			}
			wg.Wait()
		})
	}
}
