package singleflight

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const wait = 5 * time.Second

// hangs is a call that heeds nothing until back is closed.
func hangs(calls *atomic.Int32, back <-chan struct{}) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		calls.Add(1)
		<-back
		return "it was here", nil
	}
}

func TestOfWhatHangsThereIsOneCallHoweverOftenItIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string]
		var calls atomic.Int32
		var all sync.WaitGroup
		back, start := make(chan struct{}), time.Now()
		for range 20 {
			all.Go(func() {
				if v, _, err := g.Do(t.Context(), "a", wait, wait, hangs(&calls, back)); err != ErrLate || v != "" {
					t.Errorf("%q, %v", v, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took != wait {
			t.Errorf("they waited %s", took)
		}
		// It is known now: nobody waits, not even for it to be begun again.
		for range 20 {
			if _, shared, err := g.Do(t.Context(), "a", wait, wait, hangs(&calls, back)); err != ErrHangs || !shared {
				t.Errorf("%v, shared %v", err, shared)
			}
		}
		if took := time.Since(start); took != wait || calls.Load() != 1 {
			t.Errorf("%d calls, after %s", calls.Load(), took)
		}
		// Who would wait for longer waits for the rest of it.
		if _, _, err := g.Do(t.Context(), "a", time.Minute, wait, hangs(&calls, back)); err != ErrLate || time.Since(start) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if v, shared, err := g.Do(t.Context(), "b", wait, wait, func(context.Context) (string, error) { return "b", nil }); v != "b" || shared || err != nil {
			t.Errorf("another: %q, shared %v, %v", v, shared, err)
		}
		close(back)
		synctest.Wait()
		if v, shared, err := g.Do(t.Context(), "a", wait, wait, hangs(&calls, back)); v != "it was here" || shared || err != nil || calls.Load() != 2 {
			t.Errorf("after it came back: %q, shared %v, %v, %d calls", v, shared, err, calls.Load())
		}
	})
}

func TestWhoAsksMeanwhileIsToldTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string]
		var calls, others atomic.Int32
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				v, shared, err := g.Do(t.Context(), "a", wait, wait, func(context.Context) (string, error) {
					calls.Add(1)
					time.Sleep(time.Second)
					return "it", errors.New("and why that is not all")
				})
				if shared {
					others.Add(1)
				}
				if v != "it" || err == nil || err.Error() != "and why that is not all" {
					t.Errorf("%q, %v", v, err)
				}
			})
		}
		all.Wait()
		if calls.Load() != 1 || others.Load() != 19 {
			t.Errorf("%d calls, shared by %d", calls.Load(), others.Load())
		}
	})
}

func TestOnesEndIsNotAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string]
		first, leave := context.WithCancel(t.Context())
		slow := func(ctx context.Context) (string, error) {
			time.Sleep(2 * time.Second)
			return "it", ctx.Err()
		}
		time.AfterFunc(time.Second, leave)
		go func() {
			if _, _, err := g.Do(first, "a", wait, wait, slow); !errors.Is(err, context.Canceled) {
				t.Errorf("the first: %v", err)
			}
		}()
		synctest.Wait()
		if v, shared, err := g.Do(t.Context(), "a", wait, wait, slow); v != "it" || !shared || err != nil {
			t.Errorf("the call ended with the first who asked: %q, shared %v, %v", v, shared, err)
		}
		begun := false
		if _, _, err := g.Do(first, "a", wait, wait, func(context.Context) (string, error) { begun = true; return "", nil }); !errors.Is(err, context.Canceled) || begun {
			t.Errorf("for one who is gone: %v, begun %v", err, begun)
		}
	})
}

func TestACallIsToldToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string]
		start := time.Now()
		_, _, err := g.Do(t.Context(), "a", time.Hour, wait, func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != wait {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

func TestAPanicIsTheErrorOfItsCall(t *testing.T) {
	var g Group[string]
	for range 2 { // and it is over
		_, shared, err := g.Do(t.Context(), "a", wait, wait, func(context.Context) (string, error) { panic("no such thing") })
		p := new(PanicError)
		if !errors.As(err, &p) || err.Error() != "internal error: no such thing" || shared || !strings.Contains(string(p.Stack), "TestAPanicIsTheErrorOfItsCall") {
			t.Errorf("%v, shared %v", err, shared)
		}
	}
}
