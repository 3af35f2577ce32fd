//go:build machine

package machinetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// hostBundle is a signed bundle whose declaration has the program as the host's own
// binary, beside the page that hosted applies.
func hostBundle(t *testing.T, program string, counter int) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"host.json": `{"schema": 1, "name": "host", "generation": "counter", "resources": [
			{"id": "page", "type": "file", "path": "/srv/page", "content": "hello\n"},
			{"id": "host", "type": "file", "path": "` + installed + `", "mode": "0755", "source": "file:host"}]}`,
		"bundle.toml": fmt.Sprintf("name = \"host\"\nversion = \"1\"\narchitecture = \"x86_64\"\ndeclarations = [\"host.json\"]\n[[file]]\ntitle = \"host\"\npath = %q\n", program),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "host.bundle.tar")
	create(t, filepath.Dir(release(t)), "bundle", "create", filepath.Join(dir, "bundle.toml"), "--counter", fmt.Sprint(counter), "--out", out)
	return out
}

// TestTheFloorReplacesItself: where no package manager carries the host, it is a
// file at its own path, and a declaration replaces it.
func TestTheFloorReplacesItself(t *testing.T) {
	t.Parallel() // most of it is waiting
	m := hosted(t, machine.Start(t), "alpha")
	next := filepath.Join(t.TempDir(), "mesh-host")
	m.Put("/root/newer.tar.gz", 0o644, newerRelease(t))
	m.Must("tar", "-C", "/root", "-xzf", "/root/newer.tar.gz")
	if err := os.WriteFile(next, []byte(m.ReadFile("/root/nox-mesh-host-"+newer+"/mesh-host")), 0o755); err != nil {
		t.Fatal(err)
	}
	counter := int(time.Now().Unix())
	bootstrap := func(program string) (out string, code int) {
		t.Helper()
		counter++
		m.Put("/root/host.bundle.tar", 0o600, hostBundle(t, program, counter))
		out, err := m.Run(t.Context(), "mesh-host", "bootstrap", "/root/host.bundle.tar")
		if err != nil {
			out += "\n" + err.Error()
		}
		return out, machine.ExitCode(err)
	}

	// What does not run here is not put in place.
	wrong := damaged(t, m, func(b []byte) []byte { b[18] ^= 0xff; return b })
	if out, code := bootstrap(wrong); code != 4 || !strings.Contains(out, "does not run on this machine") {
		t.Errorf("another architecture: exit %d\n%s", code, out)
	}
	m.Must("cmp", launcher, installed)

	began := time.Now()
	if out, code := bootstrap(next); code != 0 {
		t.Fatalf("the next version: exit %d\n%s", code, out)
	}
	await(t, "the next version runs", func() bool { return running(t, m) == newer })
	t.Logf("it runs %.1f s after its bundle was given", time.Since(began).Seconds())
	if got := m.Must("systemctl", "show", "-P", "Result", "mesh-host"); got != "success" {
		t.Errorf("the old host did not leave well: %s", got)
	}
	t.Run("S-03 the same content is no reason to leave", func(t *testing.T) { stays(t, m) })
	awaitFor(t, 2*time.Minute, "it proves itself", func() bool {
		_, err := m.Run(t.Context(), "cmp", launcher, installed)
		return err == nil
	})

	// One that says its version, and cannot live.
	if out, code := bootstrap(badHost(t, "exits at once")); code != 0 {
		t.Errorf("the bad one: exit %d\n%s", code, out)
	}
	await(t, "the one before it serves again", func() bool { s := failure(t, m); return s.Running && s.Failed != nil })
	pid := mainPID(m, "mesh-host")
	for range 3 {
		if out, err := m.Run(t.Context(), "mesh-host", "reconcile"); machine.ExitCode(err) != 4 || !strings.Contains(out, "held") || !strings.Contains(out, "failed here 5 times") {
			t.Errorf("exit %d: %s", machine.ExitCode(err), out)
		}
	}
	if got := mainPID(m, "mesh-host"); got != pid || running(t, m) != newer {
		t.Errorf("process %s is now %s, version %s", pid, got, running(t, m))
	}

	// And back to the first, by a declaration: it is another content.
	first := filepath.Join(t.TempDir(), "mesh-host")
	if err := os.WriteFile(first, []byte(m.ReadFile("/root/nox-mesh-host-"+firstnode.Version+"/mesh-host")), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, code := bootstrap(first); code != 0 {
		t.Errorf("the first again: exit %d\n%s", code, out)
	}
	await(t, "the first runs again", func() bool { return running(t, m) == firstnode.Version })
	if !holds(t, m, "/srv/page", "hello") {
		t.Error("what was applied is gone")
	}
}
