package child

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestTheEndOfALotOfOutputIsKept(t *testing.T) {
	res, err := Run(context.Background(), Command{
		Path: "/bin/sh", Args: []string{"-c", "seq 1 3000000; echo last words >&2; exit 3"}, MaxOutput: 1 << 10, Outlives: true,
	})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.HasSuffix(err.Error(), "last words") {
		t.Errorf("the error is %v", err)
	}
	if !strings.HasSuffix(string(res.Stdout), "2999999\n3000000\nlast words\n") || len(res.Stdout) > 1<<10 || !res.Truncated || !res.Exited {
		t.Errorf("%d bytes are kept, cut %v, exited %v: %.200q", len(res.Stdout), res.Truncated, res.Exited, res.Stdout)
	}
}

// A daemon that a program leaves behind holds its output for ever.
func TestWhoHoldsTheOutputHoldsNobody(t *testing.T) {
	before := time.Now()
	res, err := Run(context.Background(), Command{Path: "/bin/sh", Args: []string{"-c", "sleep 20 & echo $!"}, Outlives: true})
	if err != nil || time.Since(before) > 4*time.Second {
		t.Fatalf("%v after %s", err, time.Since(before))
	}
	_, _ = Run(context.Background(), Command{Path: "/bin/kill", Args: strings.Fields(string(res.Stdout))})
}
