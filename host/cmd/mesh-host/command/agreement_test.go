package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// atTerminal runs a command for a person who types answer when asked.
func (m machine) atTerminal(want fault.Kind, answer string, args ...string) (out, said string) {
	m.Helper()
	ptm, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		m.Skip(err)
	}
	defer ptm.Close()
	if err := unix.IoctlSetPointerInt(int(ptm.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		m.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ptm.Fd()), unix.TIOCGPTN)
	if err != nil {
		m.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		m.Fatal(err)
	}
	defer tty.Close()
	if _, err := ptm.WriteString(answer); err != nil {
		m.Fatal(err)
	}
	var o, e bytes.Buffer
	err = Run(m.Context(), append([]string{"--root", m.root}, args...), cli.Stdio{In: tty, Out: &o, Err: &e})
	if err != nil {
		cli.PrintFault(&e, "mesh-host", err, false)
	}
	if fault.KindOf(err) != want {
		m.Fatalf("mesh-host %s: %v, want exit code %d", strings.Join(args, " "), err, want)
	}
	return o.String(), e.String()
}

// installed is a machine on which a tarball's record says that a binary was laid down.
func installed(t *testing.T) machine {
	m := newMachine(t)
	m.put("usr/local/bin/mesh-host", "")
	m.put("var/lib/nox-mesh/install.json", `{"schema": 1, "version": "1.0.0", "prefix": "/usr/local", "complete": true, "directories": ["/var/lib/nox-mesh"],
		"files": [{"path": "/usr/local/bin/mesh-host", "sha256": ["e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]}]}`)
	return m
}

func (m machine) has(path string) bool {
	_, err := os.Lstat(filepath.Join(m.root, path))
	return err == nil
}

// TestNothingIsTakenAwayUnasked: uninstall did it at once before.
func TestNothingIsTakenAwayUnasked(t *testing.T) {
	for verb, c := range map[string]struct{ gone, goes, did, asked string }{
		"uninstall": {"usr/local/bin/mesh-host", "goes  /usr/local/bin/mesh-host", "removed  /usr/local/bin/mesh-host", "take the host away? [y/N] "},
		"retire":    {"etc/motd", "remove  file:/etc/motd", "removed  file:/etc/motd", "retire this machine? [y/N] "},
	} {
		t.Run(verb, func(t *testing.T) {
			m := installed(t)
			declared := ""
			if verb == "retire" {
				declared = m.put("tmp/site.json", site)
				m.host(0, "apply", declared)
			}
			for _, args := range [][]string{{verb}, {verb, "--json"}, {verb, "--quiet"}} {
				out, said := m.host(fault.Usage, args...)
				if out != "" || !strings.Contains(said, "say --yes; --dry-run shows what goes") {
					t.Errorf("%v: %s%s", args, out, said)
				}
			}
			if out, said := m.host(0, verb, "--dry-run"); !strings.Contains(out, c.goes) || said != "" {
				t.Errorf("%s%s", out, said)
			}
			if out, _ := m.host(0, verb, "--dry-run", "--json"); !strings.HasPrefix(out, "{") || !strings.Contains(out, strings.TrimPrefix(c.gone, "usr")) {
				t.Errorf("%s", out)
			}
			m.host(fault.Usage, verb, "--dry-run", "--yes")
			for _, answer := range []string{"n\n", "\n", "yesterday\n", "\x04"} {
				out, said := m.atTerminal(fault.Failed, answer, verb)
				if !strings.Contains(out, c.goes) || !strings.Contains(said, c.asked) || !strings.Contains(said, "nothing was changed") {
					t.Errorf("%q: %s%s", answer, out, said)
				}
			}
			if !m.has(c.gone) {
				t.Fatal("it is gone all the same")
			}
			if verb == "retire" && m.has("usr/local/bin/mesh-controller") != true {
				t.Error("the rest is gone")
			}
			if out, said := m.atTerminal(0, "Y\n", verb); !strings.Contains(out, c.did) || m.has(c.gone) {
				t.Errorf("%s%s", out, said)
			}
		})
	}
	m := installed(t)
	if out, _ := m.host(0, "uninstall", "--yes", "--quiet"); out != "" || m.has("usr/local/bin/mesh-host") {
		t.Errorf("--yes --quiet: %s", out)
	}
	m = installed(t)
	if out, _ := m.host(0, "uninstall", "--yes", "--json"); !strings.Contains(out, `"removed"`) || m.has("usr/local/bin/mesh-host") {
		t.Errorf("--yes --json: %s", out)
	}
}

// TestRetireEndsNoMeshUnasked: the control plane is among what its own node owns.
func TestRetireEndsNoMeshUnasked(t *testing.T) {
	m := newMachine(t)
	m.put("var/lib/nox-mesh-controller/state.db", "")
	m.host(0, "apply", m.put("tmp/site.json", site))
	if _, said := m.host(fault.Refused, "retire", "--yes"); !strings.Contains(said, "it would remove file:/usr/local/bin/mesh-controller") || !strings.Contains(said, "--last") {
		t.Error(said)
	}
	if !m.has("etc/motd") {
		t.Error("something was done all the same")
	}
	// What stays is not taken away.
	m.host(0, "retire", "--yes", "--keep-resources")
	if !m.has("usr/local/bin/mesh-controller") {
		t.Error("it is gone")
	}
	m = newMachine(t)
	m.put("var/lib/nox-mesh-controller/state.db", "")
	m.host(0, "apply", m.put("tmp/site.json", site))
	m.host(0, "retire", "--yes", "--last")
	if out, _ := m.host(0, "owned"); m.has("etc/motd") || !strings.Contains(out, "owns nothing") {
		t.Error(out)
	}
}

// TestWhatIsOwnedKeepsTheHost, until it is retired.
func TestWhatIsOwnedKeepsTheHost(t *testing.T) {
	m := installed(t)
	m.host(0, "apply", m.put("tmp/site.json", site))
	if _, said := m.host(fault.Refused, "uninstall", "--yes"); !strings.Contains(said, "owns 2 resources") || !strings.Contains(said, "mesh-host retire") {
		t.Error(said)
	}
	m.host(fault.Refused, "uninstall", "--dry-run")
	if out, _ := m.host(0, "retire", "--yes"); !strings.Contains(out, "this machine is in no mesh") {
		t.Error(out)
	}
	m.host(0, "uninstall", "--yes", "--purge")
	if m.has("var/lib/nox-mesh") {
		t.Error("the state is there")
	}
}

// TestStatusSaysWhenItIsInstalledTwice, and the command that ends it.
func TestStatusSaysWhenItIsInstalledTwice(t *testing.T) {
	m := installed(t)
	if out, _ := m.host(0, "status"); strings.Contains(out, "twice") {
		t.Error(out)
	}
	m.put("usr/bin/mesh-host", "a program")
	if err := os.Chmod(filepath.Join(m.root, "usr/bin/mesh-host"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.put("usr/lib/systemd/system/mesh-host.service", "")
	for _, args := range [][]string{{"status"}, {"status", "--json"}} {
		if out, _ := m.host(0, args...); !strings.Contains(out, "installed twice") || !strings.Contains(out, "/usr/bin/mesh-host install --hand-over") {
			t.Errorf("%v: %s", args, out)
		}
	}
	m.host(fault.Usage, "install", "--hand-over", "--no-start")
	if _, said := m.host(0, "install", "--hand-over"); !strings.Contains(said, "removed /usr/local/bin/mesh-host") {
		t.Error(said)
	}
	if out, _ := m.host(0, "status"); strings.Contains(out, "twice") || m.has("usr/local/bin/mesh-host") {
		t.Error(out)
	}
	if out, _ := m.host(0, "install", "--hand-over"); out != "nothing of a tarball's is here: the package's host is the only one\n" {
		t.Error(out)
	}
}
