package place

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestALongWaitIsSaid once, and not a short one.
func TestALongWaitIsSaid(t *testing.T) {
	for held, want := range map[time.Duration]int{900 * time.Millisecond: 0, 5 * time.Second: 1} {
		synctest.Test(t, func(t *testing.T) {
			other := at(t)
			p, err := Open(other.Path, false)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			var said []string
			p.Note = func(text string) { said = append(said, text) }
			time.AfterFunc(held, func() { _ = unix.Flock(other.parent.FD(), unix.LOCK_UN) })
			start := time.Now()
			if err := Lock(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start); waited < held {
				t.Errorf("it was had after %v", waited)
			}
			if len(said) != want || slices.ContainsFunc(said, func(s string) bool { return !strings.Contains(s, filepath.Dir(p.Path)) }) {
				t.Errorf("after %v it said %q", held, said)
			}
		})
	}
}
