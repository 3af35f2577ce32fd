package admin_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/repository"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// TestMain is also the control plane that TestAPushIsKilledAnywhere kills.
func TestMain(m *testing.M) {
	root := os.Getenv("ADMIN_TEST_PUSH")
	if root == "" {
		os.Exit(m.Run())
	}
	l := layout.Layout{Root: root}
	desk, store, err := bare(l)
	if err == nil {
		err = errors.Join(pushFile(desk, filepath.Join(root, "new.tar")), store.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// bare is a desk of a state that is there, with nothing around it.
func bare(l layout.Layout) (*admin.Desk, *state.Store, error) {
	store, err := state.Open(l.ControllerStore())
	if err != nil {
		return nil, nil, err
	}
	blobs, err := content.Open(l.ControllerContent())
	if err != nil {
		return nil, nil, err
	}
	log := slog.New(slog.DiscardHandler)
	return &admin.Desk{
		Office: &admission.Office{Store: store, Clock: clock.At(start)}, Content: blobs, Layout: l, Log: log,
		Collector:  blobs.Collector(func(content.Report, error) {}),
		Repository: repository.New(store, blobs, l.ControllerSeed(), func() (*trust.Policy, error) { return admin.Trusted(l) }, log),
	}, store, nil
}

func pushFile(desk *admin.Desk, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w := httptest.NewRecorder()
	desk.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/push?q={}", f))
	if w.Code != http.StatusOK {
		return errors.New(w.Body.String())
	}
	return nil
}

// TestAPushIsKilledAnywhere kills the control plane that takes a bundle at each
// call that changes a directory or makes a change durable.
func TestAPushIsKilledAnywhere(t *testing.T) {
	l := layout.Layout{Root: t.TempDir()}
	if err := os.MkdirAll(l.ControllerState(), 0o700); err != nil {
		t.Fatal(err)
	}
	desk, store, err := bare(l)
	if err != nil {
		t.Fatal(err)
	}
	p := publisher(t, desk)
	for name, counter := range map[string]uint64{"old.tar": 1, "new.tar": 2} {
		if err := os.WriteFile(filepath.Join(l.Root, name), built(t, p.Spec("web", counter, "shared", fmt.Sprint("own ", counter), strings.Repeat(fmt.Sprint("large ", counter), 200_000))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(pushFile(desk, filepath.Join(l.Root, "old.tar")), store.Close()); err != nil {
		t.Fatal(err)
	}
	if kills := killed(t, l, afterKill); kills < 8 {
		t.Errorf("only %d kills hit", kills)
	}
}

// killed pushes new.tar on copies of l, killed at each step, and shows what is left
// of each.
func killed(t *testing.T, l layout.Layout, after func(*testing.T, string, layout.Layout)) (kills int) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil || exec.Command(strace, "-f", "-o", "/dev/null", "-e", "trace=none", "true").Run() != nil {
		t.Skip("strace is not here, or does not work")
	}
	for _, calls := range []string{"rename,renameat,renameat2", "unlink,unlinkat", "fsync,fdatasync"} {
		for n := 1; ; n++ {
			copied := layout.Layout{Root: t.TempDir()}
			if out, err := exec.Command("cp", "-a", l.Root+"/.", copied.Root).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			at := fmt.Sprintf("killed at %s %d", calls, n)
			c := exec.Command(strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+calls, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n), os.Args[0])
			c.Env = append(os.Environ(), "ADMIN_TEST_PUSH="+copied.Root)
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
			if err != nil && !killed {
				t.Fatalf("%s: %v\n%s", at, err, out)
			}
			after(t, at, copied)
			if !killed {
				break
			}
			if kills++; n > 100 || t.Failed() {
				t.FailNow()
			}
		}
	}
	return kills
}

// afterKill wants what is recorded to be there to the last byte, all else to be
// collected, and the next push to work.
func afterKill(t *testing.T, at string, l layout.Layout) {
	t.Helper()
	desk, store, err := bare(l)
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	defer store.Close()
	now := recorded(t, desk)
	if len(now) != 1 {
		t.Fatalf("%s: recorded %q", at, now)
	}
	is, not := "1", "2"
	if now[0] == "web 1.0.2 x86_64" {
		is, not = not, is
	}
	check := func() {
		t.Helper()
		if !holds(desk, "shared") || !holds(desk, "own "+is) || !holds(desk, strings.Repeat("large "+is, 200_000)) {
			t.Errorf("%s: %s is recorded, and its content is not all there", at, now[0])
		}
	}
	check()
	if r, err := desk.Content.Collect(t.Context(), kept(desk)); err != nil || r.Blobs != blobsOf {
		t.Errorf("%s: %d blobs stay of %d, %v", at, r.Blobs, blobsOf, err)
	}
	check()
	if holds(desk, "own "+not) {
		t.Errorf("%s: what is not recorded was not collected", at)
	}
	if err := pushFile(desk, filepath.Join(l.Root, "new.tar")); err != nil || recorded(t, desk)[0] != "web 1.0.2 x86_64" {
		t.Errorf("%s, and again: %v", at, err)
	}
	is = "2"
	check()
}

// blobsOf is how many blobs a bundle of three files has: those, the declaration,
// its manifest and the payload's, the empty configuration, the signed index, and
// a signature with its manifest.
const blobsOf = 3 + 1 + 2 + 1 + 1 + 2

func kept(desk *admin.Desk) content.Keeper {
	return module.Keeper(desk.Office.Store, desk.Content)
}
