package content

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/opencontainers/go-digest"
)

func TestACollectorWaitsForTheLastLease(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "garbage")
	l, err := s.Lease()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan Report, 9)
		c := s.Collector(func(r Report, err error) {
			if err != nil {
				t.Error(err)
			}
			told <- r
		})
		ended := make(chan struct{})
		go func() { defer close(ended); c.Run(ctx) }()
		c.Due()
		c.Due()
		synctest.Wait()
		if len(told) != 0 || !has(s, "garbage") {
			t.Error("it did not wait")
		}
		l.Release()
		// The time is the test's own.
		if r := <-told; len(r.Removed) != 1 || has(s, "garbage") {
			t.Errorf("%+v", r)
		}
		if !c.Once(ctx) || c.Err() != nil {
			t.Errorf("it is due again, or failed: %v", c.Err())
		}
		cancel()
		<-ended
	})
}

func TestACollectionThatFailedWaitsForTheNextTime(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "garbage")
	broken := errors.New("the state cannot be read")
	tells := 0
	c := s.Collector(func(Report, error) { tells++ }, func(context.Context) (Kept, error) { return Kept{}, broken })
	c.Due()
	if !c.Once(ctx) || !errors.Is(c.Err(), broken) || tells != 1 || !has(s, "garbage") {
		t.Errorf("%v, told %d times", c.Err(), tells)
	}
	if c.Once(ctx); tells != 1 {
		t.Error("it was tried again though nobody said so")
	}
	broken = nil
	c.Due()
	if !c.Once(ctx) || c.Err() != nil || has(s, "garbage") {
		t.Error(c.Err())
	}
	// One that was interrupted goes on.
	ended, cancel := context.WithCancel(ctx)
	cancel()
	c.Due()
	if c.Once(ended) || !c.Once(ctx) {
		t.Error("an interrupted collection is not due any more")
	}
}

func TestAMarkThatIsOverGoesUnlessSomebodyNeedsIt(t *testing.T) {
	s := open(t, t.TempDir())
	one, two := putTree(t, s, "one", "shared", "only one"), putTree(t, s, "two", "shared", "only two")
	beside := putTree(t, s, "beside", "of one")
	mark(t, s, one, "one", beside)
	mark(t, s, two, "two")
	both := Kept{Unmark: []digest.Digest{one.Digest, two.Digest}}
	keep := keeping(Kept{Trees: []digest.Digest{two.Digest}})

	before, _, _ := s.Size()
	r, err := s.Garbage(ctx, keeping(both), keep)
	if after, _, _ := s.Size(); err != nil || len(r.Unmarked) != 1 || r.Unmarked[0] != one.Digest || after != before {
		t.Fatalf("%+v %v", r, err)
	}
	if marks, _ := s.Marks(); len(marks) != 2 {
		t.Error("a look took a mark away")
	}
	if r, err = s.Collect(ctx, keep, keeping(both)); err != nil || len(r.Unmarked) != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	if has(s, "only one") || has(s, "of one") || !has(s, "shared") || !has(s, "only two") {
		t.Error("too much went, or too little")
	}
	if marks, _ := s.Marks(); len(marks) != 1 || marks[0].Digest != two.Digest {
		t.Errorf("%v", marks)
	}
	if n, bytes, err := s.Size(); err != nil || n != r.Blobs || bytes != r.BlobBytes {
		t.Errorf("%d blobs of %d bytes, %+v, %v", n, bytes, r, err)
	}
	// A failure of another keeper leaves the marks.
	if _, err := s.Collect(ctx, keeping(both), func(context.Context) (Kept, error) { return Kept{}, errors.New("no") }); err == nil {
		t.Error("no error")
	}
	if marks, _ := s.Marks(); len(marks) != 1 {
		t.Errorf("%v", marks)
	}
}
