package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/backup"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// TestMain is also the command that TestABackupIsKilledAnywhere kills.
func TestMain(m *testing.M) {
	if args := os.Getenv("COMMAND_TEST_ARGS"); args != "" {
		os.Exit(cli.Main("mesh-controller", func(ctx context.Context, _ []string, std cli.Stdio) error {
			return Run(ctx, strings.Split(args, "\n"), std)
		}))
	}
	os.Exit(m.Run())
}

// TestABackupIsKilledAnywhere kills it at each call that changes a directory or makes
// a change durable: its file is the one before, or the new one, whole.
func TestABackupIsKilledAnywhere(t *testing.T) {
	if err := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=none", "true").Run(); err != nil {
		t.Skipf("strace is not here, or does not work: %v", err)
	}
	l := layout.Layout{Root: t.TempDir()}
	if err := errors.Join(os.MkdirAll(filepath.Dir(l.ControllerConfig()), 0o755), os.WriteFile(l.ControllerConfig(), []byte(`listen = "127.0.0.1:0"`), 0o644)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx, l, clock.System, slog.New(slog.DiscardHandler)) }()
	defer func() { cancel(); <-ended }()
	if err := admin.NewClient(l.ControllerSocket()).Wait(t.Context(), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	opens, err := backup.Identities(strings.NewReader(id.String()))
	if err != nil {
		t.Fatal(err)
	}
	whole := func(b []byte) error {
		r, err := opens.Open(bytes.NewReader(b))
		if err == nil {
			_, err = backup.Read(r, func(*backup.Manifest) error { return nil }, func(backup.File, io.Reader) error { return nil })
		}
		return err
	}
	kills := 0
	for _, calls := range []string{"rename,renameat,renameat2", "fsync,fdatasync", "fchmod"} {
		for n := 1; ; n++ {
			dir := t.TempDir()
			file := filepath.Join(dir, "mesh.age")
			before := []byte("the backup of yesterday")
			if err := os.WriteFile(file, before, 0o600); err != nil {
				t.Fatal(err)
			}
			args := strings.Join([]string{"backup", file, "--quiet", "--root", l.Root, "--recipient", id.Recipient().String()}, "\n")
			c := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace="+calls, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n), os.Args[0])
			c.Env = append(os.Environ(), "COMMAND_TEST_ARGS="+args)
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
			at := fmt.Sprintf("killed at %s %d", calls, n)
			if err != nil && !killed {
				t.Fatalf("%s: %v\n%s", at, err, out)
			}
			now, err := os.ReadFile(file)
			if err != nil || !bytes.Equal(now, before) && whole(now) != nil || !killed && bytes.Equal(now, before) {
				t.Errorf("%s: %d bytes, %v, %v", at, len(now), err, whole(now))
			}
			if !killed {
				break
			}
			if kills++; n > 50 || t.Failed() {
				t.FailNow()
			}
			// The next one takes away what the kill left.
			c = exec.Command(os.Args[0])
			c.Env = append(os.Environ(), "COMMAND_TEST_ARGS="+args)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s, and again: %v\n%s", at, err, out)
			}
			if names, _ := os.ReadDir(dir); len(names) != 1 {
				t.Errorf("%s: left: %v", at, names)
			}
		}
	}
	if kills < 3 {
		t.Errorf("only %d kills hit", kills)
	}
}
