package installer

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// recorder is a systemctl that writes down what it is asked for.
func recorder(t *testing.T) (m manager, asked func() string) {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "systemctl")
	write(t, script, "#!/bin/sh\necho \"$*\" >>"+filepath.Join(dir, "log")+"\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	return manager(script), func() string { return read(t, filepath.Join(dir, "log")) }
}

func TestStartNeverWaitsForTheJob(t *testing.T) {
	for reload, want := range map[bool]string{
		true:  "--no-ask-password daemon-reload\n--no-ask-password enable mesh-host.service\n--no-ask-password start --no-block mesh-host.service\n",
		false: "--no-ask-password enable mesh-host.service\n--no-ask-password start --no-block mesh-host.service\n",
	} {
		m, asked := recorder(t)
		if err := m.start(t.Context(), reload); err != nil {
			t.Fatal(err)
		}
		if got := asked(); got != want {
			t.Errorf("reload %v: asked for\n%s", reload, got)
		}
	}
}

func TestAnImageIsNeverStarted(t *testing.T) {
	if m := findManager(layout.Layout{Root: t.TempDir()}); m != "" {
		t.Errorf("found %q for an image", m)
	}
}

func TestTheAnswerIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "host.sock")
	// A dead socket lies there, as after a crash.
	dead, err := door.Listen(path, door.OwnerOnly)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, path+".kept"); err != nil {
		t.Fatal(err)
	}
	dead.Close()
	if err := os.Rename(path+".kept", path); err != nil {
		t.Fatal(err)
	}
	err = answers(t.Context(), path, 200*time.Millisecond)
	if fault.KindOf(err) != fault.Failed || !strings.Contains(fault.RemedyOf(err), "journalctl") {
		t.Errorf("nobody listens: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- answers(t.Context(), path, time.Minute) }()
	l, err := door.Listen(path, door.OwnerOnly)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	if err := <-done; err != nil {
		t.Error(err)
	}
	server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

func TestTheWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := answers(ctx, filepath.Join(t.TempDir(), "none"), time.Hour); err == nil {
		t.Error("no error")
	}
}

// TestNoexecPlaceIsRefused mounts a noexec file system where the launcher goes.
func TestNoexecPlaceIsRefused(t *testing.T) {
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	l := image(t)
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	cmd := exec.Command(unshare, "-m", "sh", "-ec", `
		mount -t tmpfs -o noexec,mode=755 tmpfs "$INSTALLER_TEST_ROOT/var/lib" || exit 99
		rc=0; "$0" || rc=$?
		find "$INSTALLER_TEST_ROOT" -name '*nox*' -o -name 'mesh-host*'
		exit $rc`, os.Args[0])
	cmd.Env = append(os.Environ(), "INSTALLER_TEST_ROOT="+l.Root, "INSTALLER_TEST_FROM="+from)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() == 99 {
		t.Skipf("cannot mount here: %s", out)
	}
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "(noexec)") {
		t.Errorf("%v: %s", err, out)
	}
	if strings.Count(string(out), "\n") != 1 {
		t.Errorf("something was laid down:\n%s", out)
	}
	// What helps on a machine is said whole, and tried in machinetest.
	err = place{path: "/var/lib/nox-mesh/launcher", programs: true}.noexec(layout.Layout{}, "/var/lib")
	if r := fault.RemedyOf(err); !strings.Contains(r, `"/usr/local/lib/nox-mesh/launcher /var/lib/nox-mesh/launcher none bind 0 0"`) {
		t.Errorf("%v: %q", err, r)
	}
}
