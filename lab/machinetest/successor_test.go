//go:build machine

package machinetest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

const (
	installed = "/usr/local/bin/mesh-host"
	launcher  = "/var/lib/nox-mesh/launcher/mesh-host"
)

// badHost compiles a successor that fails as the words say.
func badHost(t *testing.T, how string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "mesh-host")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w -X 'main.how="+how+"'", "-o", out, "./testdata/badhost")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot compile a bad host: %v\n%s", err, msg)
	}
	return out
}

// damaged is the host of the machine after f has been at its bytes.
func damaged(t *testing.T, m *machine.Machine, f func([]byte) []byte) string {
	t.Helper()
	b := []byte(m.ReadFile(launcher))
	out := filepath.Join(t.TempDir(), "mesh-host")
	if err := os.WriteFile(out, f(b), 0o755); err != nil {
		t.Fatal(err)
	}
	return out
}

// hosted is a machine with the floor installed and a file applied.
func hosted(t *testing.T, lab *machine.Lab, name string) *machine.Machine {
	t.Helper()
	m, floor := unpackedOn(t, lab, name)
	m.Must(floor, "install")
	m.WriteFile("/root/web.json", 0o600, `{"schema": 1, "name": "web", "generation": 1, "resources": [
		{"id": "page", "type": "file", "path": "/srv/page", "content": "hello\n"}]}`)
	m.Must("mesh-host", "apply", "/root/web.json")
	return m
}

// put replaces the installed host by rename, and lets the running one look at
// itself.
func put(t *testing.T, m *machine.Machine, program string) {
	t.Helper()
	m.Put(installed+".new", 0o755, program)
	m.Must("mv", installed+".new", installed)
	// Whoever asks is told that the pass is over, or that the host left.
	_, _ = m.Run(t.Context(), launcher, "reconcile")
}

// failing is what status says of a version that failed.
type failing struct {
	Running  bool
	Version  string
	Owned    int
	Warnings []string
	Failed   *struct {
		Digest, Version, Why string
		Starts               int
		Back                 bool
		Words                []string
	}
}

func failure(t *testing.T, m *machine.Machine) (s failing) {
	t.Helper()
	// What is installed may be what is bad: the launcher's copy is asked.
	out, err := m.Run(t.Context(), launcher, "status", "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	if err != nil {
		return failing{}
	}
	return s
}

// TestS11S12S13BadSuccessors replaces a host that runs by one that cannot live, in every
// way, and waits, unattended, for the one before it to serve again.
func TestS11S12S13BadSuccessors(t *testing.T) {
	t.Parallel()
	const last = "the last words of one that "
	for _, c := range []struct {
		how     string
		program func(t *testing.T, m *machine.Machine) string
		starts  int
		within  time.Duration // of 10-performance
		words   string        // what it says, if it lives long enough
	}{
		{how: "exits at once", starts: 5, within: time.Minute, words: last},
		{how: "panics in init", starts: 5, within: time.Minute, words: last},
		{how: "ends with success", starts: 5, within: time.Minute, words: last},
		{how: "crashes once it is ready", starts: 5, within: time.Minute, words: last},
		{how: "is of another architecture", starts: 1, within: time.Minute, program: func(t *testing.T, m *machine.Machine) string {
			return damaged(t, m, func(b []byte) []byte { b[18] ^= 0xff; return b }) // e_machine (elf(5))
		}},
		{how: "is empty", starts: 1, within: time.Minute, program: func(t *testing.T, m *machine.Machine) string {
			return damaged(t, m, func([]byte) []byte { return nil })
		}},
		{how: "is cut in the middle", starts: 5, within: time.Minute, program: func(t *testing.T, m *machine.Machine) string {
			return damaged(t, m, func(b []byte) []byte { return b[:len(b)/2] })
		}},
		{how: "hangs before it is ready", starts: 5, within: 5 * time.Minute, words: last},
		{how: "hangs and hears no signal", starts: 5, within: 5 * time.Minute, words: last},
		// By the watchdog, with SIGABRT: Go then writes where each goroutine is.
		{how: "is deaf once it is ready", starts: 5, within: 5 * time.Minute, words: "goroutine "},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			m := hosted(t, machine.Start(t), "alpha")
			before := m.Must("sha256sum", launcher)
			if c.program == nil {
				c.program = func(t *testing.T, _ *machine.Machine) string { return badHost(t, c.how) }
			}
			program := c.program(t, m)
			began := time.Now()
			put(t, m, program)
			var s failing
			for s.Failed == nil || !s.Running || c.words != "" && len(s.Failed.Words) == 0 {
				if time.Since(began) > 2*c.within {
					t.Fatalf("after %s: %+v\n%s", time.Since(began), s, m.Must("journalctl", "-u", "mesh-host", "-n", "60", "--no-pager"))
				}
				time.Sleep(100 * time.Millisecond)
				s = failure(t, m)
			}
			t.Logf("the good one serves again after %.1f s (aim %s)", time.Since(began).Seconds(), c.within)
			if s.Version != firstnode.Version || s.Owned != 1 || s.Failed.Starts != c.starts || !s.Failed.Back {
				t.Errorf("status says %+v, failed %+v", s, *s.Failed)
			}
			if got := strings.Join(s.Failed.Words, "\n"); !strings.Contains(got, c.words) {
				t.Errorf("its last words are not kept: %q", got)
			}
			if got := m.Must("sha256sum", installed); strings.Fields(got)[0] != strings.Fields(before)[0] {
				t.Errorf("installed is %s, not the one that ran before", got)
			}
			if said := m.Must("mesh-host", "status"); !strings.Contains(said, "failed here") {
				t.Errorf("status does not say what failed:\n%s", said)
			}
			if !holds(t, m, "/srv/page", "hello") {
				t.Error("what was applied is gone")
			}
			m.Must("rm", "/srv/page")
			m.Must("mesh-host", "reconcile")
			if !holds(t, m, "/srv/page", "hello") {
				t.Error("it does not look after the machine")
			}
		})
	}
}

// TestAGoodSuccessor proves itself, and is not taken back when it dies a day
// later; nor is one by any number of restarts in its first minute.
func TestAGoodSuccessor(t *testing.T) {
	t.Parallel() // most of it is waiting
	tarball := newerRelease(t)
	m := hosted(t, machine.Start(t), "alpha")
	// A resource that cannot work has no say in it (S-09), nor the lack of a mesh.
	m.WriteFile("/root/web.json", 0o600, `{"schema": 1, "name": "web", "generation": 2, "resources": [
		{"id": "page", "type": "file", "path": "/srv/page", "content": "hello\n"},
		{"id": "none", "type": "process", "name": "none", "command": ["/no/such/program"]}]}`)
	if out, err := m.Run(t.Context(), "mesh-host", "apply", "/root/web.json"); machine.ExitCode(err) != 4 {
		t.Fatalf("a process without a program: %v\n%s", err, out)
	}
	m.Put("/root/newer.tar.gz", 0o644, tarball)
	m.Must("tar", "-C", "/root", "-xzf", "/root/newer.tar.gz")
	old := m.Must("sha256sum", launcher)

	m.Must("/root/nox-mesh-host-"+newer+"/mesh-host", "install")
	await(t, "the newer version runs", func() bool { return running(t, m) == newer })
	began := time.Now()
	for n := range 10 { // also before it can hear a signal
		m.Must("systemctl", "restart", "mesh-host")
		if n%2 == 0 {
			await(t, "it is back", func() bool { return running(t, m) == newer })
		}
	}
	await(t, "it runs after ten restarts", func() bool { return running(t, m) == newer })
	if got := m.Must("sha256sum", launcher); got != old {
		t.Errorf("it is proven after %s", time.Since(began))
	}
	awaitFor(t, 2*time.Minute, "it proves itself", func() bool { return m.Must("sha256sum", launcher) != old })
	t.Logf("proven %.0f s after it was installed", time.Since(began).Seconds())
	m.Must("cmp", launcher, installed)

	for range 8 {
		pid := mainPID(m, "mesh-host")
		m.Must("kill", "-SEGV", pid)
		await(t, "it is started again", func() bool { return mainPID(m, "mesh-host") != pid && running(t, m) == newer })
	}
	if s := failure(t, m); s.Failed != nil {
		t.Errorf("a proven version was given up: %+v", s)
	}

	t.Run("S-03 the same content is no reason to leave", func(t *testing.T) { stays(t, m) })
}

// stays wants the host to go on whatever is done to its file, as long as it has
// the same content.
func stays(t *testing.T, m *machine.Machine) {
	t.Helper()
	pid := mainPID(m, "mesh-host")
	for _, deed := range []string{"touch " + installed, "cp " + installed + " /tmp/again", "mv /tmp/again " + installed, "systemctl reload mesh-host"} {
		m.Must(strings.Fields(deed)...)
		if out, err := m.Run(t.Context(), "mesh-host", "reconcile"); err != nil && machine.ExitCode(err) != 4 {
			t.Errorf("after %q: %v\n%s", deed, err, out)
		}
	}
	if got := mainPID(m, "mesh-host"); got != pid {
		t.Errorf("it left for a file with the same content: %s is now %s", pid, got)
	}
}

// TestBothBad: the successor fails, and so does what was good. The launcher stops
// trying, and says so in a way that nobody overlooks.
func TestBothBad(t *testing.T) {
	m := hosted(t, machine.Start(t), "alpha")
	bad := badHost(t, "exits at once")
	m.Must("systemctl", "stop", "mesh-host")
	m.Must("rm", "-r", "/run/nox-mesh")
	m.WriteFile("/run/nox-mesh", 0o600, "in the way of every version\n")
	m.Put(installed+".new", 0o755, bad)
	m.Must("mv", installed+".new", installed)
	m.Must("systemctl", "start", "--no-block", "mesh-host")
	await(t, "the unit has failed", func() bool {
		out, _ := m.Run(t.Context(), "systemctl", "is-failed", "mesh-host")
		return out == "failed"
	})
	if got := m.Must("systemctl", "show", "-P", "ExecMainStatus", "mesh-host"); got != "179" {
		t.Errorf("the launcher ended with %s", got)
	}
	if got := m.Must("journalctl", "-u", "mesh-host", "--no-pager"); !strings.Contains(got, "does not live either") {
		t.Errorf("it does not say why:\n%s", got)
	}
	m.Must("rm", "/run/nox-mesh")
	m.Must("systemctl", "start", "mesh-host")
	await(t, "once a person mended it, it runs", func() bool { return running(t, m) == firstnode.Version })
}

// TestBadSuccessorWithoutAServiceManager is the same under a loop of the shell.
func TestBadSuccessorWithoutAServiceManager(t *testing.T) {
	m := hosted(t, machine.Start(t), "alpha")
	const root = "/srv/other"
	m.Must("/root/nox-mesh-host-"+firstnode.Version+"/mesh-host", "install", "--root", root)
	for _, how := range []string{"exits at once", "panics in init"} {
		t.Run(how, func(t *testing.T) {
			m.Put(root+installed, 0o755, badHost(t, how))
			began := time.Now()
			m.Must("systemd-run", "--unit=loop", "--setenv=NOX_ROOT="+root, "bash", "-c",
				fmt.Sprintf("trap '' HUP; while :; do %s%s launch %s%s; done", root, launcher, root, installed))
			defer m.Must("systemctl", "stop", "loop")
			await(t, "the good one serves", func() bool {
				if _, err := m.Run(t.Context(), "cmp", root+launcher, root+installed); err != nil {
					return false
				}
				out, err := m.Run(t.Context(), root+launcher, "status", "--root", root)
				return err == nil && strings.Contains(out, "running") && strings.Contains(out, "failed here")
			})
			t.Logf("the good one serves again after %.1f s", time.Since(began).Seconds())
		})
	}
}
