//go:build machine

package machinetest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// aPackage is the host's package of a release: its version, file and signature.
type aPackage struct{ version, file string }

func packageOf(t *testing.T, dist string) aPackage {
	t.Helper()
	file := hostPackage(t, dist)
	parts := strings.Split(strings.TrimPrefix(filepath.Base(file), "nox-mesh-host-"), "-")
	return aPackage{version: parts[0] + "-" + parts[1], file: file}
}

func digestOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(b))
}

// declaration names the package as it comes with a bundle.
func (p aPackage) declaration(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf(`{"schema": 1, "name": "hosts", "resources": [
		{"id": "host", "type": "package", "name": "nox-mesh-host", "version": %q, "source": %q, "signature": %q}]}`,
		p.version, digestOf(t, p.file), digestOf(t, p.file+".sig"))
}

// bundle is a signed bundle of that declaration and the package.
func (p aPackage) bundle(t *testing.T) string {
	t.Helper()
	dir, publisher := t.TempDir(), filepath.Dir(release(t))
	for name, text := range map[string]string{
		"hosts.json": fmt.Sprintf(`{"schema": 1, "name": "hosts", "generation": "counter", "resources": [
			{"id": "host", "type": "package", "name": "nox-mesh-host", "version": %q, "source": "package:host", "signature": "package:host"}]}`, p.version),
		"bundle.toml": fmt.Sprintf("name = \"hosts\"\nversion = \"1\"\narchitecture = \"x86_64\"\ndeclarations = [\"hosts.json\"]\n[[package]]\ntitle = \"host\"\npath = %q\n", p.file),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "hosts.bundle.tar")
	create(t, publisher, "bundle", "create", filepath.Join(dir, "bundle.toml"), "--counter", fmt.Sprint(time.Now().Unix()), "--out", out)
	return out
}

// fleetNode is a line of `mesh-controller nodes --json`.
type fleetNode struct {
	Name, Version, Installed string
	Connected                bool
	Wanted, Applied          uint64
	Failed                   int
}

func fleet(t *testing.T, m *machine.Machine) (out []fleetNode) {
	t.Helper()
	text, err := m.Run(t.Context(), "mesh-controller", "nodes", "--json")
	if err != nil || json.Unmarshal([]byte(text), &out) != nil {
		return nil
	}
	return out
}

// TestTheFleetReplacesItsHosts: two machines of which one carries the control
// plane, their hosts installed with pacman, and one declaration that names the
// next version. Then one that cannot live, and one that can.
func TestTheFleetReplacesItsHosts(t *testing.T) {
	t.Parallel() // most of it is waiting
	first := packageOf(t, release(t))
	second := packageOf(t, built(t, newer, nil))
	bad := packageOf(t, built(t, "0.0.2", func(source string) {
		text := "package main\n\nimport \"os\"\n\nfunc init() {\n\tif len(os.Args) > 1 && os.Args[1] == \"run\" {\n\t\tpanic(\"this version cannot live\")\n\t}\n}\n"
		if err := os.WriteFile(filepath.Join(source, "host/cmd/mesh-host/bad.go"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}))
	third := packageOf(t, built(t, "0.0.3", nil))

	lab := machine.Start(t)
	alpha, beta := lab.Boot("alpha"), lab.Boot("beta")
	both := []*machine.Machine{alpha, beta}
	defer func() {
		for _, m := range both {
			if t.Failed() {
				for _, look := range []string{"mesh-host status", "mesh-controller nodes", "journalctl -u mesh-host --no-pager -n 40"} {
					out, _ := m.Run(t.Context(), strings.Fields(look)...)
					t.Logf("%s: %s\n%s", m.Name(), look, out)
				}
			}
		}
	}()
	for _, m := range both {
		trustsPublisher(t, m)
		m.Put("/root/first.pkg.tar.zst", 0o644, first.file)
		m.Put("/root/first.pkg.tar.zst.sig", 0o644, first.file+".sig")
		m.Must("pacman", "-U", "--noconfirm", "/root/first.pkg.tar.zst")
		await(t, "the service answers", func() bool { return running(t, m) != "" })
	}
	m := alpha
	bundle := artefact(t, "*.bundle.tar")
	m.Put("/root/"+filepath.Base(bundle), 0o644, bundle)
	m.Must("mesh-host", "bootstrap", "/root/"+filepath.Base(bundle))
	m.Must("bash", "-euo", "pipefail", "-c", "mesh-controller token create | mesh-host enrol -")
	if out, err := beta.Pipe(t.Context(), strings.NewReader(alpha.Must("mesh-controller", "token", "create")), "mesh-host", "enrol", "-"); err != nil {
		t.Fatalf("cannot enrol beta: %v\n%s", err, out)
	}
	alpha.WriteFile("/root/web.json", 0o600, `{"schema": 1, "name": "web", "resources": [
		{"id": "sleeper", "type": "process", "name": "sleeper", "command": ["/bin/sleep", "infinity"], "user": "nobody"}]}`)
	alpha.Must("mesh-controller", "declare", "web", "/root/web.json", "--on", "every")
	units := map[*machine.Machine][]string{alpha: {"nox-mesh-controller", "nox-sleeper"}, beta: {"nox-sleeper"}}
	pids := func() (out []string) {
		for _, m := range both {
			for _, u := range units[m] {
				out = append(out, mainPID(m, u))
			}
		}
		return out
	}
	await(t, "the processes are up", func() bool { return !slices.Contains(pids(), "0") })
	processes := pids()

	declare := func(p aPackage) {
		t.Helper()
		b := p.bundle(t)
		alpha.Put("/root/hosts.bundle.tar", 0o600, b)
		alpha.Must("mesh-controller", "push", "/root/hosts.bundle.tar")
		alpha.WriteFile("/root/hosts.json", 0o600, p.declaration(t))
		alpha.Must("mesh-controller", "declare", "hosts", "/root/hosts.json", "--on", "every")
	}
	settled := func(version string, failed int) func() bool {
		return func() bool {
			nodes := fleet(t, alpha)
			return len(nodes) == 2 && !slices.ContainsFunc(nodes, func(n fleetNode) bool {
				return n.Version != version || n.Installed != "" || !n.Connected || n.Failed != failed || failed == 0 && n.Applied != n.Wanted
			})
		}
	}
	registered := func(want aPackage) {
		t.Helper()
		for _, m := range both {
			if got := m.Must("pacman", "-Q", "nox-mesh-host"); got != "nox-mesh-host "+want.version {
				t.Errorf("%s: the package database says %q, want %s", m.Name(), got, want.version)
			}
			if got := m.Must("pacman", "-Qkk", "nox-mesh-host"); !strings.Contains(got, ", 0 altered files") {
				t.Errorf("%s: %s", m.Name(), got)
			}
		}
	}
	hosts := func() []string { return []string{mainPID(alpha, "mesh-host"), mainPID(beta, "mesh-host")} }

	// The next version.
	began := time.Now()
	declare(second)
	await(t, "both run the next version", settled(newer, 0))
	t.Logf("both run it %.1f s after it was declared", time.Since(began).Seconds())
	registered(second)
	for _, m := range both {
		if got := m.Must("systemctl", "show", "-P", "Result", "-P", "NRestarts", "mesh-host"); !strings.Contains(got, "success") || !slices.Contains(strings.Fields(got), "1") {
			t.Errorf("%s: the old host did not leave once, and well: %s", m.Name(), got)
		}
	}
	t.Run("S-10 what runs and what is installed is told right at each step", func(t *testing.T) {
		for _, m := range both {
			steps(t, m, newer)
		}
	})
	if now := pids(); !slices.Equal(now, processes) {
		t.Errorf("the processes were %v and are %v", processes, now)
	}

	before := hosts()
	for _, m := range both {
		m.Put("/root/second.pkg.tar.zst", 0o644, second.file)
		m.Put("/root/second.pkg.tar.zst.sig", 0o644, second.file+".sig")
		m.Must("pacman", "-U", "--noconfirm", "/root/second.pkg.tar.zst")
	}
	t.Run("S-01 pacman does not touch the unit", func(t *testing.T) {
		if now := hosts(); !slices.Equal(now, before) {
			t.Errorf("the hosts were %v and are %v", before, now)
		}
	})
	for _, m := range both {
		m.Must("touch", "/usr/bin/mesh-host")
		m.Must("mesh-host", "reconcile")
		m.Must("mesh-host", "reconcile")
	}
	t.Run("S-03 the same content is no reason to leave", func(t *testing.T) {
		if now := hosts(); !slices.Equal(now, before) {
			t.Errorf("the hosts were %v and are %v", before, now)
		}
	})

	// One that cannot live. The one before it has to have proved itself.
	proven := alpha.Must("sha256sum", "/usr/bin/mesh-host")
	awaitFor(t, 2*time.Minute, "the next version proves itself", func() bool {
		return !slices.ContainsFunc(both, func(m *machine.Machine) bool {
			out, _ := m.Run(t.Context(), "sha256sum", launcher)
			return !strings.HasPrefix(out, strings.Fields(proven)[0])
		})
	})
	began = time.Now()
	declare(bad)
	awaitFor(t, 2*time.Minute, "both are back, and hold it back", settled(newer, 1))
	t.Logf("both are back %.1f s after the bad one was declared", time.Since(began).Seconds())
	for _, m := range both {
		awaitFor(t, time.Minute, "the package database tells the truth", func() bool {
			return m.Must("pacman", "-Q", "nox-mesh-host") == "nox-mesh-host "+second.version
		})
	}
	registered(second)
	t.Run("S-06 three times more", func(t *testing.T) {
		before := hosts()
		for range 3 {
			for _, m := range both {
				if out, err := m.Run(t.Context(), "mesh-host", "reconcile"); machine.ExitCode(err) != 4 || !strings.Contains(out, "held") || !strings.Contains(out, "version 0.0.2 failed here 5 times") {
					t.Errorf("%s: exit %d: %s", m.Name(), machine.ExitCode(err), out)
				}
			}
		}
		if now := hosts(); !slices.Equal(now, before) {
			t.Errorf("the hosts were %v and are %v, and nothing was new", before, now)
		}
	})
	if got := beta.Must("mesh-host", "status"); !strings.Contains(got, "panic: this version cannot live") {
		t.Errorf("status does not say the last words:\n%s", got)
	}
	if got := alpha.Must("mesh-controller", "show", "beta"); !strings.Contains(got, "held") {
		t.Errorf("the control plane does not say what beta holds back:\n%s", got)
	}

	// A run of the package manager that fails is no reason to leave either.
	for _, m := range both {
		m.Must("mount", "--bind", "/usr/bin", "/usr/bin")
		m.Must("mount", "-o", "remount,ro,bind", "/usr/bin")
	}
	before = hosts()
	declare(third)
	awaitFor(t, 2*time.Minute, "both say that it failed", func() bool {
		return !slices.ContainsFunc(both, func(m *machine.Machine) bool {
			out, _ := m.Run(t.Context(), "mesh-host", "status", "--json")
			return !strings.Contains(out, `"there": "failed"`)
		})
	})
	t.Run("S-03 a failed run of the package manager is no reason to leave", func(t *testing.T) {
		if now := hosts(); !slices.Equal(now, before) {
			t.Errorf("the hosts were %v and are %v", before, now)
		}
	})

	// And a good one.
	for _, m := range both {
		m.Must("mount", "-o", "remount,rw,bind", "/usr/bin") // in use: it goes with the machine
		_, _ = m.Run(t.Context(), "mesh-host", "reconcile")  // answered, or it left
	}
	await(t, "both run the good one", settled("0.0.3", 0))
	registered(third)
	if now := pids(); !slices.Equal(now, processes) {
		t.Errorf("in the end the processes were %v and are %v", processes, now)
	}
}

// steps wants the history to say what ran and what was installed, at each step
// (S-10): the pass that installed it by the old version, the next by the new.
func steps(t *testing.T, m *machine.Machine, version string) {
	t.Helper()
	var reports []struct {
		Version, Installed string
		Resources          []struct{ Key, Outcome string }
	}
	if err := json.Unmarshal([]byte(m.Must("mesh-host", "history", "--json")), &reports); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(reports) // the oldest first
	for i, r := range reports {
		for _, x := range r.Resources {
			if x.Key != "package:nox-mesh-host" || x.Outcome != "applied" {
				continue
			}
			if r.Version == version || r.Installed != version {
				t.Errorf("%s: the pass that installed it says running %q, installed %q", m.Name(), r.Version, r.Installed)
			}
			if i+1 == len(reports) || reports[i+1].Version != version || reports[i+1].Installed != "" {
				t.Errorf("%s: the next one does not say that it runs", m.Name())
			}
			return
		}
	}
	t.Errorf("%s: no pass says that it installed %s: %+v", m.Name(), version, reports)
}

// trustsPublisher makes a machine whose pacman takes nothing but what the
// publisher signed.
func trustsPublisher(t *testing.T, m *machine.Machine) {
	t.Helper()
	m.Put("/root/package.pub.asc", 0o644, filepath.Join(filepath.Dir(release(t)), "keys/package.pub.asc"))
	// The machine's root is a Debian that has pacman as well; this one is of Arch.
	m.Must("bash", "-euo", "pipefail", "-c", `
		rm /etc/os-release
		echo ID=arch >/etc/os-release
		install -d -m 700 /etc/pacman.d/gnupg
		touch /etc/pacman.d/gnupg/pubring.gpg
		gpg --homedir /etc/pacman.d/gnupg --batch --quiet --import /root/package.pub.asc
		gpg --homedir /etc/pacman.d/gnupg --batch --with-colons --list-keys | awk -F: '$1 == "fpr" {print $10 ":6:"; exit}' |
			gpg --homedir /etc/pacman.d/gnupg --batch --quiet --import-ownertrust
		gpgconf --homedir /etc/pacman.d/gnupg --kill all
		sed -i '/^ *\(Local\|Remote\)\?\(File\)\?SigLevel/d; s/^\[options\]$/[options]\nSigLevel = Required\nLocalFileSigLevel = Required/' /etc/pacman.conf
		pacman-conf SigLevel`)
}

// create runs mesh-release with the publisher's keys.
func create(t *testing.T, publisher string, args ...string) {
	t.Helper()
	args = append(args, "--keys", filepath.Join(publisher, "keys"), "--passphrase-file", filepath.Join(publisher, "passphrase"))
	if msg, err := exec.Command(filepath.Join(publisher, "bin/mesh-release"), args...).CombinedOutput(); err != nil {
		t.Fatalf("mesh-release %v: %v\n%s", args, err, msg)
	}
}
