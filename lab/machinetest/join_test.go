//go:build machine

package machinetest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// joining is what these tests read of `mesh-controller join --json`.
type joining struct {
	Version, Address string
	Floor            struct{ Command, SHA256 string }
	Pacman           struct {
		Fingerprint, Trust, Install string
		Lines                       []string
	}
}

func join(t *testing.T, m *machine.Machine, args ...string) (j joining) {
	t.Helper()
	out := m.Must(append([]string{"mesh-controller", "join", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &j); err != nil {
		t.Fatalf("mesh-controller join --json is no JSON: %v\n%s", err, out)
	}
	return j
}

// aPerson is the machine's root, who types what is printed for any user.
func aPerson(m *machine.Machine) {
	m.WriteFile("/usr/local/bin/sudo", 0o755, "#!/bin/sh\nexec \"$@\"\n")
}

// ofArch makes a machine one of Arch, where pacman has its keyring: the root is a
// Debian that has pacman as well, and there pacman-key(8) lacks a part of makepkg.
func ofArch(t *testing.T, m *machine.Machine) {
	t.Helper()
	part, err := exec.Command("tar", "-C", "/", "-c", "usr/share/makepkg/util").Output()
	if err != nil {
		t.Fatalf("cannot take along what pacman-key needs: %v", err)
	}
	if out, err := m.Pipe(t.Context(), bytes.NewReader(part), "tar", "-C", "/", "-x"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m.Must("bash", "-euo", "pipefail", "-c", "rm /etc/os-release; echo ID=arch >/etc/os-release; pacman-key --init")
}

// TestTheMeshServesItsNextMachines: from the first node alone, with no network but
// the cable between them, one machine takes the package and another the tarball,
// each as `mesh-controller join` prints it, and both enrol. What was changed on the
// way is refused; and what is pushed later is what they upgrade to.
func TestTheMeshServesItsNextMachines(t *testing.T) {
	tarball, bundle := artefact(t, "nox-mesh-host-*.tar.gz"), artefact(t, "*.bundle.tar")
	newerBundle := one(t, filepath.Dir(newerRelease(t)), "*.bundle.tar")
	lab := machine.Start(t)
	alpha, beta, gamma := lab.Boot("alpha"), lab.Boot("beta"), lab.Boot("gamma")
	for _, m := range []*machine.Machine{beta, gamma} {
		aPerson(m)
	}
	ofArch(t, beta)
	alpha.Put("/root/"+filepath.Base(tarball), 0o644, tarball)
	alpha.Put("/root/first.bundle.tar", 0o644, bundle)
	alpha.Put("/root/next.bundle.tar", 0o644, newerBundle)
	alpha.Must("tar", "-C", "/root", "-xzf", "/root/"+filepath.Base(tarball))
	alpha.Must("/root/nox-mesh-host-"+firstnode.Version+"/mesh-host", "install")
	alpha.Must("mesh-host", "bootstrap", "/root/first.bundle.tar")
	for range 2 {
		began := time.Now()
		alpha.Must("mesh-host", "bootstrap", "/root/first.bundle.tar")
		t.Logf("another bootstrap: %d ms", time.Since(began).Milliseconds())
	}

	// Off, until somebody says so.
	out, err := alpha.Run(t.Context(), "mesh-controller", "join")
	if machine.ExitCode(err) != 3 || !strings.Contains(err.Error(), "repository_listen = ") || !strings.Contains(err.Error(), "/etc/nox-mesh/controller.toml") {
		t.Errorf("join without a repository: %v\n%s", err, out)
	}
	if out, err := beta.Run(t.Context(), "curl", "-sS", "-m", "5", "http://"+alpha.Address()+":7480/"); err == nil {
		t.Errorf("something answers: %s", out)
	}
	alpha.WriteFile("/etc/nox-mesh/controller.toml", 0o644, "repository_listen = \"[::]:7480\"\n")
	alpha.Must("systemctl", "restart", "nox-mesh-controller")
	alpha.Must("bash", "-euo", "pipefail", "-c", "mesh-controller token create | mesh-host enrol -")
	awaitLink(t, alpha)
	j := join(t, alpha)
	if j.Address != alpha.Address()+":7480" || j.Version != firstnode.Version || "sha256:"+j.Floor.SHA256 != digestOf(t, tarball) {
		t.Errorf("join: %+v", j)
	}
	text := alpha.Must("mesh-controller", "join")
	for _, line := range append([]string{j.Floor.Command, j.Pacman.Trust, j.Pacman.Install}, j.Pacman.Lines...) {
		if !strings.Contains(text+"\n", "\n  "+line+"\n") {
			t.Errorf("join does not print %q:\n%s", line, text)
		}
	}
	if strings.Contains(text, "noxt1.") {
		t.Errorf("join prints a token:\n%s", text)
	}
	if got := alpha.Must("mesh-controller", "status"); !strings.Contains(got, "are served "+firstnode.Version+" for x86_64 on ") {
		t.Errorf("status:\n%s", got)
	}

	t.Run("I-14 what was changed on the way is refused", func(t *testing.T) { refusesTheChanged(t, lab, beta, gamma, j) })

	// Gamma takes the tarball, beta the package.
	gamma.Must("bash", "-c", "cd /root && "+j.Floor.Command)
	if got := running(t, gamma); got != firstnode.Version {
		t.Errorf("gamma runs %q", got)
	}
	if out := beta.Must("bash", "-c", "yes | { "+j.Pacman.Install+"; } 2>&1"); !strings.Contains(out, "nox-mesh-host") {
		t.Errorf("pacman says:\n%s", out)
	}
	await(t, "beta's host answers", func() bool { return running(t, beta) != "" })
	for _, m := range []*machine.Machine{beta, gamma} {
		token := alpha.Must("mesh-controller", "token", "create")
		if out, err := m.Pipe(t.Context(), strings.NewReader(token), "mesh-host", "enrol", "-"); err != nil {
			t.Fatalf("cannot enrol %s: %v\n%s", m.Name(), err, out)
		}
		awaitLink(t, m)
	}
	await(t, "alpha knows them", func() bool {
		nodes := alpha.Must("mesh-controller", "nodes")
		return strings.Contains(nodes, "beta") && strings.Contains(nodes, "gamma")
	})

	// A newer release.
	first := beta.Must("pacman", "-Q", "nox-mesh-host")
	if out, err := alpha.Run(t.Context(), "bash", "-c", "mesh-controller push /root/next.bundle.tar 2>&1"); err != nil || !strings.Contains(out, "new machines are served release "+newer) {
		t.Errorf("push: %v\n%s", err, out)
	}
	beta.Must("bash", "-c", "pacman -Syu --noconfirm 2>&1")
	want := packageOf(t, filepath.Dir(newerRelease(t))).version
	if got := beta.Must("pacman", "-Q", "nox-mesh-host"); got != "nox-mesh-host "+want || got == first {
		t.Errorf("after pacman -Syu beta has %q, before %q", got, first)
	}
	if got := join(t, alpha); got.Version != newer || "sha256:"+got.Floor.SHA256 != digestOf(t, newerRelease(t)) {
		t.Errorf("join after the push: %+v", got)
	}
	// And it stays so: after a restart, and when the older comes again.
	alpha.Must("systemctl", "restart", "nox-mesh-controller")
	if out, err := alpha.Run(t.Context(), "bash", "-c", "mesh-controller push --allow-rollback /root/first.bundle.tar 2>&1"); err != nil || !strings.Contains(out, "not served") {
		t.Errorf("the older: %v\n%s", err, out)
	}
	if got := join(t, alpha).Version; got != newer {
		t.Errorf("after the older was pushed, %s is served", got)
	}
	gamma.Must("bash", "-c", "cd /root && "+join(t, alpha).Floor.Command)
	await(t, "gamma runs the newer", func() bool { return running(t, gamma) == newer })
	t.Run("F-02 a control plane that was taken over leads the host nowhere", func(t *testing.T) { leadsNowhere(t, alpha) })
}

// leadsNowhere has the control plane's user put a link in the place of the seed,
// which is in its own directory: the host lays nothing down behind it.
func leadsNowhere(t *testing.T, alpha *machine.Machine) {
	const state, seed = "/var/lib/nox-mesh-controller", "/var/lib/nox-mesh-controller/seed"
	takenOver := func(line string) {
		t.Helper()
		alpha.Must("setpriv", "--reuid=842", "--regid=842", "--clear-groups", "bash", "-euc", "cd "+state+"; "+line)
	}
	alpha.Must("install", "-d", "/srv/elsewhere")
	before := alpha.Must("find", "/etc", "/srv/elsewhere")
	for _, to := range []string{"/etc", "/srv/elsewhere"} {
		takenOver("mv seed moved; ln -s " + to + " seed")
		out, err := alpha.Run(t.Context(), "mesh-host", "reconcile")
		if machine.ExitCode(err) != 4 || !strings.Contains(out, "failed") || !strings.Contains(out, seed) {
			t.Errorf("a link to %s: %v\n%s", to, err, out)
		}
		if after := alpha.Must("find", "/etc", "/srv/elsewhere"); after != before {
			t.Errorf("a link to %s: before\n%s\nafter\n%s", to, before, after)
		}
		takenOver("rm seed; mv moved seed")
		alpha.Must("mesh-host", "reconcile")
	}
	// What it served goes on.
	if got := join(t, alpha).Version; got != newer {
		t.Errorf("%s is served", got)
	}
}

// refusesTheChanged puts somebody between the machines and alpha, who changes one
// byte of a file.
func refusesTheChanged(t *testing.T, lab *machine.Lab, beta, gamma *machine.Machine, j joining) {
	var changed atomic.Value // the last part of the name of the file that is changed
	changed.Store("")
	dist := release(t)
	publisher := filepath.Dir(dist)
	listener := lab.Listen(3128)
	proxy := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := os.ReadFile(filepath.Join(dist, strings.TrimPrefix(r.URL.Path, "/floor/")))
		if path.Base(r.URL.Path) == "nox-mesh.gpg" {
			b, err = os.ReadFile(filepath.Join(publisher, "public/nox-mesh.gpg"))
		}
		if err != nil || r.URL.Host != j.Address {
			http.NotFound(w, r)
			return
		}
		if what := changed.Load().(string); what != "" && strings.HasSuffix(r.URL.Path, what) {
			b[len(b)/2] ^= 1
		}
		_, _ = w.Write(b)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = proxy.Serve(listener) }()
	t.Cleanup(func() { proxy.Close(); <-done })
	export := exec.Command(filepath.Join(publisher, "bin/mesh-release"), "keys", "export", filepath.Join(publisher, "keys"), "--out", filepath.Join(publisher, "public"))
	if msg, err := export.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	through := "export http_proxy=http://" + listener.Addr().String() + "; cd /root; "

	// The tarball, by the command as it is printed.
	changed.Store(".tar.gz")
	if out, err := gamma.Run(t.Context(), "bash", "-c", through+j.Floor.Command); err == nil || !strings.Contains(out, "FAILED") {
		t.Errorf("a changed tarball: %v\n%s", err, out)
	}
	if has(t, gamma, "/root/nox-mesh-host-"+firstnode.Version) || has(t, gamma, "/usr/local/bin/mesh-host") {
		t.Error("something of a changed tarball was unpacked")
	}

	// The key, then the database, then the package.
	changed.Store("nox-mesh.gpg")
	if out, err := beta.Run(t.Context(), "bash", "-c", through+j.Pacman.Trust); err == nil || !strings.Contains(out, "FAILED") {
		t.Errorf("a changed key: %v\n%s", err, out)
	}
	if out, err := beta.Run(t.Context(), "pacman-key", "--list-keys", j.Pacman.Fingerprint); err == nil {
		t.Errorf("a changed key was taken:\n%s", out)
	}
	changed.Store("")
	beta.Must("bash", "-c", "cd /root; "+j.Pacman.Trust+" 2>&1")
	beta.WriteFile("/root/lines", 0o644, strings.Join(j.Pacman.Lines, "\n")+"\n")
	beta.Must("bash", "-c", "cat /root/lines >>/etc/pacman.conf")
	for _, c := range []struct{ what, say string }{
		{"nox-mesh.db", "invalid or corrupted database (PGP signature)"},
		{".pkg.tar.zst", "invalid or corrupted package"},
	} {
		changed.Store(c.what)
		out, err := beta.Run(t.Context(), "bash", "-c", through+"yes | { "+j.Pacman.Install+"; } 2>&1")
		if err == nil || !strings.Contains(out, c.say) {
			t.Errorf("a changed %s: %v\n%s", c.what, err, out)
		}
		if has(t, beta, "/usr/bin/mesh-host") {
			t.Errorf("a changed %s was installed", c.what)
		}
	}
	// It is the change that is refused, not the road.
	changed.Store("")
	beta.Must("bash", "-c", through+"pacman -Sy 2>&1")
}
