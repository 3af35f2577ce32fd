package client

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

func TestHeartbeatsKeepTheSessionAndThreeMissingOnesEndIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t.Context(), New(Config{}), &Identity{Stage: StageEnrolling, Mesh: "m1"}, "127.0.0.1:1")
		r, w := io.Pipe()
		s.body = r
		// As the transport does.
		defer context.AfterFunc(s.ctx, func() { w.CloseWithError(s.ctx.Err()) })()
		s.silence = time.AfterFunc(s.patience(), func() { s.cancel(errSilent) })
		ended := make(chan error, 1)
		go func() { ended <- s.read() }()

		messages := link.NewWriter(w)
		for range 1000 { // a night, by the bubble's clock
			time.Sleep(link.HeartbeatInterval)
			if err := messages.Write(link.Message{Type: link.MessageHeartbeat}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		last := time.Now()
		if err := <-ended; !errors.Is(err, errSilent) {
			t.Error(err)
		}
		if d := time.Since(last); d != 90*time.Second {
			t.Errorf("the silence was noticed after %v", d)
		}
		s.close(nil)
	})
}
