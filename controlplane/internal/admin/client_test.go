package admin_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestWhatAPersonIsToldWhenThereIsNoAnswer: who is root is not told to be.
func TestWhatAPersonIsToldWhenThereIsNoAnswer(t *testing.T) {
	hangUp := func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = r.Body.Read(make([]byte, 1))
			panic(http.ErrAbortHandler)
		}
	}
	undeclare := refusal(admin.Undeclare.Ask, admin.ModuleRef{Name: "x"})
	push := func(ctx context.Context, c *admin.Client) error {
		_, err := admin.SendBundle(ctx, c, admin.Push{}, strings.NewReader("a bundle"))
		return err
	}
	for name, x := range map[string]struct {
		answers          http.HandlerFunc
		ask              func(context.Context, *admin.Client) error
		sentence, remedy string
	}{
		"it ends":          {hangUp, undeclare, "cannot reach the control plane: EOF", ""},
		"it ends, reading": {hangUp, push, "the control plane ended while it read", "push it again: nothing of it is recorded"},
		"another version": {http.NotFound, undeclare,
			"cannot understand the control plane: it answered 404 Not Found; is it of another version?", ""},
		"it ended before": {nil, push, `cannot reach the control plane: nothing answers on "SOCKET"`,
			"it is kept up by mesh-host: see `mesh-host status`, or `systemctl status nox-mesh-controller`"},
	} {
		path := filepath.Join(t.TempDir(), "s")
		l, err := door.Listen(path, door.OwnerOnly)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		if x.answers == nil {
			stop()
			x.answers = http.NotFound
		}
		go func() { ended <- door.Server{Handler: x.answers, Log: slog.New(slog.DiscardHandler)}.Serve(ctx, l) }()
		if ctx.Err() != nil {
			ended <- <-ended // it has ended
		}
		err = x.ask(t.Context(), admin.NewClient(path))
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want := strings.ReplaceAll(x.sentence, "SOCKET", path)
		if err == nil || err.Error() != want || fault.RemedyOf(err) != x.remedy || fault.KindOf(err) != fault.Failed {
			t.Errorf("%s: %v; %s", name, err, fault.RemedyOf(err))
		}
	}
}

// TestAPushThatIsReadIsTakenWhenTheControlPlaneEnds: it has the grace.
func TestAPushThatIsReadIsTakenWhenTheControlPlaneEnds(t *testing.T) {
	_, desk := open(t)
	b := built(t, publisher(t, desk).Spec("web", 1, strings.Repeat("x", 1<<20)))
	path := filepath.Join(t.TempDir(), "s")
	l, err := door.Listen(path, door.OwnerOnly)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	grace := door.Server{Handler: desk.Handler(), Grace: 1 << 62, Log: slog.New(slog.DiscardHandler)}
	go func() { ended <- grace.Serve(ctx, l) }()
	in, rest := io.Pipe()
	answered := make(chan error, 1)
	go func() {
		_, err := admin.SendBundle(t.Context(), admin.NewClient(path), admin.Push{}, in)
		answered <- err
	}()
	// It is in the middle when the control plane is told to end.
	if _, err := rest.Write(b[:len(b)/2]); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := rest.Write(b[len(b)/2:]); err != nil {
		t.Fatal(err)
	}
	rest.Close()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil || len(recorded(t, desk)) != 1 {
		t.Errorf("%q, %v", recorded(t, desk), err)
	}
}
