//go:build machine

package walk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/walk/look"
)

// private are the folders of the host's own.
var private = []string{"/var/lib/nox-mesh", "/run"}

// A bench is a folder that stands for a machine, and a host for it.
type bench struct {
	t     *testing.T
	top   string // all of it, for the walk to remove
	root  string
	beats string
	host  string
	start map[string]look.Thing
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
			t.Fatal("needs root: files and processes get owners")
		}
		t.Skip("needs root: files and processes get owners")
	}
	top, err := os.MkdirTemp("", "nox-walk-")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, top: top, root: filepath.Join(top, "m"), beats: filepath.Join(top, "beats"), host: filepath.Join(top, "mesh-host")}
	t.Cleanup(b.close)
	build := func(out, of string) {
		t.Helper()
		cmd := exec.Command("go", "build", "-o", out, of)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cannot build %s: %v\n%s", of, err, said)
		}
	}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	// Processes are other users', who must come this far.
	must(os.Chmod(top, 0o755), os.Mkdir(b.root, 0o755), os.Mkdir(b.beats, 0o777), os.Chmod(b.beats, 0o777))
	for _, dir := range []string{"/etc/walk", "/srv", "/usr/lib/walk", "/run", "/var/lib/nox-mesh/launcher"} {
		must(os.MkdirAll(b.root+dir, 0o755))
	}
	must(os.Chmod(b.root+"/var/lib/nox-mesh", 0o700))
	if given := os.Getenv("NOX_WALK_HOST"); given != "" {
		program, err := os.ReadFile(given)
		must(err, os.WriteFile(b.host, program, 0o755))
	} else {
		build(b.host, "../../host/cmd/mesh-host")
	}
	build(b.root+beatPath, "./testdata/beat")
	must(os.Link(b.host, b.root+"/var/lib/nox-mesh/launcher/mesh-host"))
	// What was here before the host: some of it will be declared, some not.
	must(
		put(b.root, "/etc/walk/file", look.Thing{Kind: 'f', Mode: 0o640, UID: 5, GID: 6, Text: "was here before\n"}),
		put(b.root, "/etc/walk/link", look.Thing{Kind: 'l', UID: 5, Text: "other"}),
		put(b.root, "/etc/walk/dir", look.Thing{Kind: 'd', Mode: 0o750, UID: 5}),
		put(b.root, "/etc/walk/dir/theirs", look.Thing{Kind: 'f', Mode: 0o600, UID: 5, Text: "theirs\n"}),
		put(b.root, "/etc/walk/other", look.Thing{Kind: 'f', Mode: 0o644, Text: "symlinks lead here\n"}),
		put(b.root, "/etc/walk/one.nox-saved", look.Thing{Kind: 'f', Mode: 0o644, Text: "a name that the host would like\n"}),
		put(b.root, "/etc/walk/onex", look.Thing{Kind: 'f', Mode: 0o644, Text: "beside\n"}),
		syscall.Mkfifo(b.root+"/etc/walk/fifo", 0o600),
	)
	b.start, err = look.Tree(b.root, private...)
	must(err)
	return b
}

// close ends all that runs from the folder, each by its id, and removes it.
func (b *bench) close() {
	if err := b.endAll(); err != nil {
		b.t.Error(err)
	}
	if b.t.Failed() && os.Getenv("NOX_WALK_KEEP") != "" {
		b.t.Logf("the machine is left in %s", b.top)
		return
	}
	if err := os.RemoveAll(b.top); err != nil {
		b.t.Error(err)
	}
}

// endAll kills the shims first, which would start the others anew.
func (b *bench) endAll() error {
	return b.until(20*time.Second, func() error {
		all, err := look.From(b.root)
		if err != nil || len(all) == 0 {
			return err
		}
		for _, shims := range []bool{true, false} {
			for _, r := range all {
				if (r.Shim() != "") == shims {
					err = errors.Join(err, r.Signal(syscall.SIGKILL))
				}
			}
		}
		return errors.Join(err, fmt.Errorf("still runs: %v", all))
	})
}

// until asks again and again, and returns the last answer.
func (b *bench) until(limit time.Duration, ask func() error) error {
	// Not that of the test, which is over when its cleaning is done.
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (b *bench) command(args ...string) *exec.Cmd {
	cmd := exec.Command(b.host, append([]string{"--root", b.root}, args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// kill starts the command and kills it after that time, unless it is over by
// then, and reports whether it was not.
func (b *bench) kill(after time.Duration, args ...string) (hit bool, err error) {
	cmd := b.command(args...)
	if err := cmd.Start(); err != nil {
		return false, err
	}
	over := make(chan struct{})
	timer := time.AfterFunc(after, func() {
		select {
		case <-over:
		default:
			_ = cmd.Process.Kill()
		}
	})
	_ = cmd.Wait()
	close(over)
	timer.Stop()
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled(), nil
}

// A report is what apply --json prints.
type report struct {
	Resources []struct{ Key, ID, Outcome, Note, Error string }
}

// call runs the command to its end and reads what it prints into out.
func (b *bench) call(out any, args ...string) (code int, said string, err error) {
	cmd := b.command(args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		err = nil
	}
	if err != nil {
		return -1, e.String(), fmt.Errorf("mesh-host %v: %w\n%s", args, err, e.Bytes())
	}
	code, said = cmd.ProcessState.ExitCode(), o.String()+e.String()
	if code == 0 || code == 4 {
		if err := json.Unmarshal(o.Bytes(), out); err != nil {
			return code, said, fmt.Errorf("mesh-host %v prints %q: %w", args, o.Bytes(), err)
		}
	}
	return code, said, nil
}
