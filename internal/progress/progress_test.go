package progress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const mib = 1 << 20

// A log is a writer that is no terminal.
type log struct {
	mu     sync.Mutex
	text   bytes.Buffer
	writes int
	err    error
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	l.text.Write(p)
	return len(p), l.err
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// copyMiB works through total MiB, one each step, in fake time, and between the
// ticks.
func copyMiB(r *Reporter, step time.Duration, from, to, total int64) {
	time.Sleep(time.Millisecond)
	for i := from; i < to; i++ {
		time.Sleep(step)
		r.At(At{Title: fmt.Sprintf("blob-%d", i/100), Done: (i + 1) * mib, Total: total * mib})
	}
}

func TestALogHasFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		r := New(&l, Options{})
		r.Begin("reading", "site.bundle.tar")
		copyMiB(r, 40*time.Millisecond, 0, 1000, 1000)
		r.End()
		r.Close()
		want := `reading site.bundle.tar: 1000 MiB
reading site.bundle.tar: 324 MiB of 1000 MiB, 32%, 25 MiB/s, 27 s left, blob-3
reading site.bundle.tar: 574 MiB of 1000 MiB, 57%, 25 MiB/s, 17 s left, blob-5
reading site.bundle.tar: 824 MiB of 1000 MiB, 82%, 25 MiB/s, 7 s left, blob-8
reading site.bundle.tar: 1000 MiB in 40 s, 25 MiB/s
`
		if got := l.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

func TestWhatStandsStillIsSaidOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		r := New(&l, Options{})
		r.Begin("reading", "-")
		r.At(At{Title: "a", Done: 3 * mib})
		time.Sleep(5 * time.Minute)
		r.Close()
		if n := strings.Count(l.String(), "reading -: 3.0 MiB, a\n"); n != 4 {
			t.Errorf("said %d times in five minutes:\n%s", n, l.String())
		}
	})
}

func TestWhatIsOverAtOnceIsNotSpokenOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		r := New(&l, Options{})
		r.Begin("reading", "small.tar")
		copyMiB(r, 10*time.Millisecond, 0, 290, 290)
		r.Close()
		if l.String() != "" {
			t.Errorf("said %q", l.String())
		}
	})
}

func TestWhatStopsSaysWhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		r := New(&l, Options{})
		r.Begin("reading", "cut.tar")
		copyMiB(r, 100*time.Millisecond, 0, 50, 200)
		r.Close()
		want := "reading cut.tar: 200 MiB\nreading cut.tar: stopped at 50 MiB of 200 MiB after 5 s\n"
		if l.String() != want {
			t.Errorf("said %q, want %q", l.String(), want)
		}
	})
}

func TestWhatWasHereIsNoRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		r := New(&l, Options{})
		r.Begin("reading", "again.tar")
		r.At(At{Title: "big", Done: 1000 * mib, Total: 1020 * mib, Here: 1000 * mib})
		time.Sleep(1500 * time.Millisecond)
		for i := int64(1); i <= 20; i++ {
			time.Sleep(time.Second)
			r.At(At{Title: "new", Done: (1000 + i) * mib, Total: 1020 * mib, Here: 1000 * mib})
		}
		time.Sleep(500 * time.Millisecond)
		r.Close()
		got := l.String()
		if want := "reading again.tar: 1020 MiB in 22 s, 931 KiB/s, 1000 MiB were already here\n"; !strings.HasSuffix(got, want) {
			t.Errorf("said\n%swant the end\n%s", got, want)
		}
	})
}

func TestEventsParseAndAreOneALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		r := New(&l, Options{JSON: true})
		r.Step("compiling \x1b[2Jmesh-host")
		r.Begin("reading", "site.bundle.tar")
		copyMiB(r, 250*time.Millisecond, 0, 9, 16)
		r.Close()
		var kinds []string
		var last map[string]any
		for line := range strings.Lines(l.String()) {
			last = nil
			if err := json.Unmarshal([]byte(line), &last); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			kinds = append(kinds, last["event"].(string))
		}
		if got, want := strings.Join(kinds, " "), "step begin progress progress end"; got != want {
			t.Errorf("events %s, want %s", got, want)
		}
		first, _, _ := strings.Cut(l.String(), "\n")
		if want := `{"event":"step","step":"compiling ` + "\uFFFD" + `[2Jmesh-host"}`; first != want {
			t.Errorf("%s, want %s", first, want)
		}
		if want := `{"event":"progress","doing":"reading","what":"site.bundle.tar","title":"blob-0","done":7340032,"total":16777216,"rate":3670016,"left":2,"seconds":2}`; !strings.Contains(l.String(), want) {
			t.Errorf("no event %s in\n%s", want, l.String())
		}
		if last["done"] != 9.0*mib || last["total"] != 16.0*mib || last["seconds"] != 2.251 {
			t.Errorf("the last event is %v", last)
		}
	})
}

func TestQuietShowsNothing(t *testing.T) {
	for _, o := range []Options{{Quiet: true}, {Quiet: true, JSON: true}} {
		synctest.Test(t, func(t *testing.T) {
			var l log
			r := New(&l, o)
			r.Step("compiling")
			r.Begin("reading", "x")
			if in := strings.NewReader("abc"); r.Reader(in, "x", 3) != io.Reader(in) {
				t.Error("a reader is wrapped to show nothing")
			}
			copyMiB(r, time.Second, 0, 30, 30)
			r.Close()
			if l.writes != 0 {
				t.Errorf("%+v: said %q", o, l.String())
			}
		})
	}
}

func TestAWriterThatTakesNothingStopsNoWork(t *testing.T) {
	for name, o := range map[string]Options{"lines": {}, "events": {JSON: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				taken, w := io.Pipe()
				r := New(w, o)
				for range 1000 {
					r.Step(strings.Repeat("compiling ", 20))
				}
				r.Begin("reading", "x")
				before := time.Now()
				copyMiB(r, time.Second, 0, 30, 30)
				if took := time.Since(before); took != 30*time.Second+time.Millisecond {
					t.Errorf("30 s of work took %s", took)
				}
				before = time.Now()
				r.End()
				r.Close()
				r.Close()
				if took := time.Since(before); took > 2*patience {
					t.Errorf("the end took %s", took)
				}
				r.mu.Lock()
				if len(r.text) > maxText {
					t.Errorf("%d bytes are kept", len(r.text))
				}
				r.mu.Unlock()
				taken.Close() // lets the goroutine go
			})
		})
	}
}

func TestAWriteThatFailsWasTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := log{err: errors.New("gone")}
		r := New(&l, Options{JSON: true})
		r.Begin("reading", "x")
		copyMiB(r, time.Second, 0, 30, 30)
		r.Close()
		if l.writes != 1 {
			t.Errorf("written to %d times", l.writes)
		}
	})
}

func TestNothingIsShownAfterTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		r := New(&l, Options{})
		r.Step("one")
		r.Close()
		r.Step("two")
		r.Begin("reading", "x")
		copyMiB(r, time.Second, 0, 30, 30)
		r.End()
		if l.String() != "one\n" {
			t.Errorf("said %q", l.String())
		}
	})
}

func TestAReaderSaysWhatIsReadOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		r := New(&l, Options{JSON: true})
		r.Begin("sending", "x.tar")
		n, err := io.Copy(io.Discard, r.Reader(strings.NewReader("hello"), "x.tar", 5))
		r.Close()
		if want := `{"event":"end","doing":"sending","what":"x.tar","done":5,"total":5}`; n != 5 || err != nil || !strings.Contains(l.String(), want) {
			t.Errorf("%d, %v:\n%s", n, err, l.String())
		}
	})
}

func BenchmarkAt(b *testing.B) {
	r := New(io.Discard, Options{})
	defer r.Close()
	r.Begin("reading", "x")
	b.ReportAllocs()
	for i := range b.N {
		r.At(At{Title: "blob", Done: int64(i), Total: int64(b.N)})
	}
}
