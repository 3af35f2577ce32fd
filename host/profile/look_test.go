package profile

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// A statfs(2) of a server that is gone: one goroutine waits for it, however
// often it is asked, and nothing else waits. When it comes back it is asked anew.
func TestAFactThatHangsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quiet(recorded(t, "debian-kvm"))
		var calls atomic.Int32
		back := make(chan struct{})
		statfs := s.statfs
		s.statfs = func(path string, st *unix.Statfs_t) error {
			calls.Add(1)
			<-back
			return statfs(path, st)
		}
		start := time.Now()
		for range 20 {
			p, inv := s.find(t.Context(), runs, has)
			if p.Distribution != "debian" || len(inv.Disks) != 1 || inv.PackageManagerVersion != "2.6.1" {
				t.Fatalf("others are held up: %+v %+v", p, inv)
			}
			if inv.FileSystems != nil || inv.Unknown["file_systems"] != "it did not answer within 5 s" {
				t.Fatalf("%+v", inv)
			}
		}
		if n, took := calls.Load(), time.Since(start); n != 1 || took != far {
			t.Errorf("%d goroutines wait, and they were waited for for %s", n, took)
		}
		close(back)
		synctest.Wait()
		if _, inv := s.find(t.Context(), has); len(inv.FileSystems) != 2 || inv.Unknown["file_systems"] != "" {
			t.Errorf("after it came back: %+v", inv)
		}
	})
}

func TestTwoThatAskForTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quiet(recorded(t, "empty"))
		f := fact{"slow", time.Minute, func(ctx context.Context, _ source) (finding, error) {
			time.Sleep(time.Second)
			return func(p *Profile, _ *Inventory) { p.Distribution = "found" }, ctx.Err()
		}}
		first, leave := context.WithCancel(t.Context())
		go func() {
			if _, err := s.ask(first, f); !errors.Is(err, errStopped) {
				t.Errorf("the first: %v", err)
			}
		}()
		synctest.Wait()
		leave()
		var p Profile
		if found, err := s.ask(t.Context(), f); err != nil {
			t.Errorf("the look ended with the first who asked: %v", err)
		} else if found(&p, nil); p.Distribution != "found" {
			t.Errorf("%+v", p)
		}
	})
}

// A panic in what is looked at, on a goroutine of its own, ends nobody's program.
func TestAFactThatPanicsIsUnknown(t *testing.T) {
	s := quiet(recorded(t, "empty"))
	s.interfaces = func() ([]net.Interface, error) { panic("no such thing") }
	if _, inv := s.find(t.Context(), has); inv.Unknown["addresses"] != "internal error: no such thing" {
		t.Errorf("%+v", inv)
	}
}

func TestTheReasonIsInSeconds(t *testing.T) {
	s := quiet(recorded(t, "empty"))
	for _, late := range []error{context.DeadlineExceeded, unix.ETIMEDOUT} {
		f := fact{"x", far, func(context.Context, source) (finding, error) { return nil, late }}
		_, err := s.ask(t.Context(), f)
		if is := err.Error() == "it did not answer within 5 s"; is != (late == context.DeadlineExceeded) {
			t.Errorf("%v: %v", late, err)
		}
	}
}

func TestAReasonIsOneShortLine(t *testing.T) {
	got := line("a\x1b[2J\u202e\nb\xff" + strings.Repeat("ü", 300))
	if strings.ContainsAny(got, "\x1b\n\u202e") || !utf8.ValidString(got) || len(got) > maxLine+len("…") || !strings.HasPrefix(got, "a?[2J??b?ü") || !strings.HasSuffix(got, "…") {
		t.Errorf("%q", got)
	}
}
