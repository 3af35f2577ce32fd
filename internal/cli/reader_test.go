package cli

import (
	"bytes"
	"os"
	"testing"
	"time"
)

func TestASilentFollowerNoticesThatNobodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	std := Stdio{Out: &answer{w: w}}
	ctx, stop := std.UntilUnread(t.Context())
	defer stop()
	if ctx.Err() != nil {
		t.Fatal("it is over while somebody reads")
	}
	r.Close()
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Error("nobody reads, and it goes on")
	}
}

func TestWhoFollowsEndsThoughSomebodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, std := range []Stdio{{Out: w}, {Out: &bytes.Buffer{}}} {
		ctx, stop := std.UntilUnread(t.Context())
		if ctx.Err() != nil || std.ToTerminal() {
			t.Errorf("%v, a terminal %v", ctx.Err(), std.ToTerminal())
		}
		stop()
		if ctx.Err() == nil {
			t.Error("it is not over")
		}
	}
}
