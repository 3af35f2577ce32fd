package child

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestAStreamHasAllThatIsPrintedAsItComes(t *testing.T) {
	var out bytes.Buffer
	if err := Stream(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", "seq 1 1000000; echo aside >&2"}}, &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 1000000 || !strings.HasSuffix(out.String(), "\n1000000\n") {
		t.Errorf("%d lines", n)
	}
	err := Stream(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", "echo data; echo why >&2; exit 3"}}, io.Discard)
	if err == nil || !strings.HasSuffix(err.Error(), ": exit status 3: why") {
		t.Errorf("%v", err)
	}
}

// first calls f with what is written first, and fails from then on if told so.
type first struct {
	f    func(p []byte)
	then error
}

func (w *first) Write(p []byte) (int, error) {
	if w.f != nil {
		w.f(p)
		w.f = nil
	}
	if w.then != nil {
		return 0, w.then
	}
	return len(p), nil
}

// silent prints its process id and then nothing for an hour, as what is followed may.
var silent = Command{Path: "/bin/sh", Args: []string{"-c", "echo $$; exec sleep 3600"}}

func TestAStreamEndsWithWhoReadsIt(t *testing.T) {
	for _, by := range []string{"its context", "a full pipe"} {
		ctx, cancel := context.WithCancel(t.Context())
		pid := 0
		w := &first{f: func(p []byte) {
			pid, _ = strconv.Atoi(strings.TrimSpace(string(p)))
			if by == "its context" {
				cancel()
			}
		}}
		if by == "a full pipe" {
			w.then = syscall.EPIPE
		}
		if err := Stream(ctx, silent, w); !errors.Is(err, w.then) {
			t.Errorf("%s: %v, want %v", by, err, w.then)
		}
		if pid <= 1 || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			t.Errorf("%s: process %d is still there", by, pid)
		}
		cancel()
	}
}
