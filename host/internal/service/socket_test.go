package service

import (
	"context"
	"os"
	"testing"
	"time"
)

// TestTheHostsSocketIsRootsAlone: whoever may speak there is root on the machine.
func TestTheHostsSocketIsRootsAlone(t *testing.T) {
	cfg := machine(t)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	for r := asker(cfg); r.Greet(ctx) != nil && ctx.Err() == nil; {
		<-time.After(5 * time.Millisecond)
	}
	if fi, err := os.Stat(cfg.Layout.HostSocket()); err != nil || fi.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
