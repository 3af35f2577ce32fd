package profile

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// A statfs(2) of a server that is gone: one goroutine waits for it, however
// often it is asked, and nothing else waits. When it comes back it is asked anew.
func TestAFactThatHangsHoldsUpNoOther(t *testing.T) {
	s := quiet(recorded(t, "debian-kvm"))
	var calls atomic.Int32
	back := make(chan struct{})
	ended := make(chan struct{}, 1)
	statfs := s.statfs
	s.statfs = func(path string, st *unix.Statfs_t) error {
		calls.Add(1)
		<-back
		return statfs(path, st)
	}
	limit := 20 * time.Millisecond
	short := func(list []fact) []fact {
		out := append([]fact(nil), list...)
		for i := range out {
			if out[i].name == "file_systems" {
				out[i].limit = limit
				look := out[i].look
				out[i].look = func(ctx context.Context, s source) (finding, error) {
					defer func() { ended <- struct{}{} }()
					return look(ctx, s)
				}
			}
		}
		return out
	}
	for n := range 20 {
		if n == 1 {
			limit = time.Hour // which nobody waits any more
		}
		p, inv := s.find(t.Context(), runs, short(has))
		if p.Distribution != "debian" || len(inv.Disks) != 1 || inv.PackageManagerVersion != "2.6.1" {
			t.Fatalf("others are held up: %+v %+v", p, inv)
		}
		if inv.FileSystems != nil || !strings.HasPrefix(inv.Unknown["file_systems"], "it did not answer within ") {
			t.Fatalf("%+v", inv)
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d goroutines wait", n)
	}
	close(back)
	<-ended
	// Whoever joins the old look or begins another gets an answer now.
	if _, inv := s.find(t.Context(), has); len(inv.FileSystems) != 2 || inv.Unknown["file_systems"] != "" {
		t.Errorf("after it came back: %+v", inv)
	}
}

// TestOnesEndIsNotAnothers: two ask for the same, the first goes away.
func TestOnesEndIsNotAnothers(t *testing.T) {
	s := quiet(recorded(t, "empty"))
	begun, answer := make(chan struct{}), make(chan struct{})
	f := fact{"slow", time.Minute, func(ctx context.Context, _ source) (finding, error) {
		close(begun)
		<-answer
		return func(p *Profile, _ *Inventory) { p.Distribution = "found" }, ctx.Err()
	}}
	first, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { _, err := s.looks.ask(first, s, f); gone <- err }()
	<-begun
	s.looks.mu.Lock()
	var k *look
	for _, k = range s.looks.open {
	}
	s.looks.mu.Unlock()
	leave()
	if err := <-gone; !errors.Is(err, errStopped) {
		t.Fatalf("the first: %v", err)
	}
	close(answer)
	<-k.done
	if k.err != nil {
		t.Errorf("the look ended with the first who asked: %v", k.err)
	}
}

func TestTheReasonIsInSeconds(t *testing.T) {
	s := quiet(recorded(t, "empty"))
	for _, late := range []error{context.DeadlineExceeded, unix.ETIMEDOUT} {
		f := fact{"x", far, func(context.Context, source) (finding, error) { return nil, late }}
		_, err := s.looks.ask(t.Context(), s, f)
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
