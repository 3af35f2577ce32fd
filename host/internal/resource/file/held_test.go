package file

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// A trial is a bench with content that failed at /etc/it, and content that was put
// back there.
type trial struct {
	*bench
	asked     int
	old, bad  digest.Digest
	want, was resource.Want
}

func newTrial(t *testing.T) *trial {
	b := &trial{bench: newBench(t)}
	b.old, b.bad = b.add("old"), b.add("bad")
	source := func(d digest.Digest) resource.Want {
		return want(t, `{"path":"/etc/it","mode":"0755","source":"`+d.String()+`"}`)
	}
	b.want, b.was = source(b.bad), source(b.old)
	b.kind.failed = func(path string, d digest.Digest) string {
		b.asked++
		if path == "/etc/it" && d == b.bad {
			return `failed here 5 times as process "server" (exited with 1)`
		}
		return ""
	}
	b.kind.restored = func(path string, d digest.Digest) bool { return path == "/etc/it" && d == b.old }
	return b
}

// recorded is the record of what was applied once.
func recorded(w resource.Want) *resource.Record {
	return &resource.Record{Key: w.Resource.Key(), ID: "it", Type: w.Resource.Type, Spec: w.Spec}
}

func (b *trial) held(w resource.Want, prior *resource.Record) string {
	b.Helper()
	_, err := b.kind.Check(ctx, w, prior)
	var h resource.Held
	if err != nil && !errors.As(err, &h) {
		b.Fatal(err)
	}
	return h.Why
}

func TestR03ContentThatFailedHereIsHeld(t *testing.T) {
	b := newTrial(t)
	b.write("/etc/it", "old", 0o755)
	short := b.bad.String()[:len("sha256:")+12]
	want := short + `…: failed here 5 times as process "server" (exited with 1); held at the one before it until other content is declared`
	// By its record, and when there is none: the store was lost.
	for name, prior := range map[string]*resource.Record{"recorded": recorded(b.want), "without a record": nil} {
		if got := b.held(b.want, prior); got != want {
			t.Errorf("%s: held says %q, want %q", name, got, want)
		}
	}
	// Other content was declared in between: it is wanted anew.
	if got := b.held(b.want, recorded(b.was)); got != "" {
		t.Errorf("after other content: %q", got)
	}
	// Only the owner differs, or the mode: still.
	changed := b.want
	changed.Resource.File.Mode = 0o700
	if got := b.held(changed, recorded(b.want)); got != want {
		t.Errorf("with another mode: %q", got)
	}
	// Somebody made something else of it: no reason to lay the bad one down.
	b.write("/etc/it", "theirs", 0o755)
	if got := b.held(b.want, recorded(b.want)); got != want {
		t.Errorf("drifted: %q", got)
	}
	b.must(os.Remove(b.path("/etc/it")))
	if got := b.held(b.want, recorded(b.want)); !strings.HasPrefix(got, short) || !strings.HasSuffix(got, "is gone: it comes when its process is started again") {
		t.Errorf("gone: %q", got)
	}
	// Other content, and what is elsewhere, is not.
	if got := b.held(b.was, recorded(b.want)); got != "" {
		t.Errorf("other content: %q", got)
	}
}

func TestWhatIsAsDeclaredAsksForNoFailure(t *testing.T) {
	b := newTrial(t)
	b.write("/etc/it", "bad", 0o755)
	b.must(os.Chown(b.path("/etc/it"), os.Geteuid(), os.Getegid()))
	if got := b.held(b.want, recorded(b.want)); got != "" || b.asked != 0 {
		t.Errorf("%q, asked %d times", got, b.asked)
	}
	b.must(os.Chmod(b.path("/etc/it"), 0o700)) // its mode is put right
	if got := b.held(b.want, recorded(b.want)); got != "" || b.asked != 0 {
		t.Errorf("of another mode: %q, asked %d times", got, b.asked)
	}
}

// What the shim put back is the host's own work, and nobody's edit.
func TestR03WhatWasPutBackGoesWithTheFile(t *testing.T) {
	b := newTrial(t)
	b.kind.failed = nil // it was not known when it was laid down
	b.write("/etc/it", "before", 0o600)
	rec := b.apply(b.want, nil)
	b.write("/etc/it", "old", 0o755) // by the shim
	b.remove(rec, "removed", "")
	b.text("/etc/it", "before")
	b.holds("/etc", "it")

	rec = b.apply(b.want, nil)
	b.write("/etc/it", "theirs", 0o755)
	b.remove(rec, "removed", `somebody changed it: what it was is in "it.nox-saved"`)
	b.text("/etc/it.nox-saved", "theirs")
}
