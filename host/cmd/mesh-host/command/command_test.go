package command

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A machine is a folder that stands for one on which the host is installed, and
// no service runs: each command does the work itself.
type machine struct {
	*testing.T
	root string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	m := machine{t, filepath.Join(t.TempDir(), "m")}
	if err := os.MkdirAll(filepath.Join(m.root, "var/lib/nox-mesh"), 0o700); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m machine) put(name, content string) string {
	m.Helper()
	path := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		m.Fatal(err)
	}
	return path
}

// host runs a command, and returns what a person sees of it: the fault is the
// last line of the second.
func (m machine) host(want fault.Kind, args ...string) (out, said string) {
	m.Helper()
	var o, e bytes.Buffer
	err := Run(m.Context(), append([]string{"--root", m.root}, args...), cli.Stdio{In: strings.NewReader(""), Out: &o, Err: &e})
	if err != nil {
		cli.PrintFault(&e, "mesh-host", err, false)
	}
	if fault.KindOf(err) != want {
		m.Fatalf("mesh-host %s: %v, want exit code %d", strings.Join(args, " "), err, want)
	}
	return o.String(), e.String()
}

const site = `{"schema": 1, "name": "site", "resources": [
  {"id": "motd", "type": "file", "path": "/etc/motd", "content": "hello\n"},
  {"id": "binary", "type": "file", "path": "/usr/local/bin/mesh-controller", "content": "a program"}]}`

// TestPlanWarnsBeforeTheControlPlaneGoes: it listed "remove" among others before.
func TestPlanWarnsBeforeTheControlPlaneGoes(t *testing.T) {
	m := newMachine(t)
	m.host(0, "apply", m.put("tmp/site.json", site))
	empty := m.put("tmp/empty.json", `{"schema": 1, "name": "site", "resources": []}`)
	const warning = "this takes the control plane away"
	out, said := m.host(fault.Todo, "plan", empty)
	if !strings.Contains(out, "remove") || !strings.HasPrefix(said, "warning: remove file:/usr/local/bin/mesh-controller: "+warning) || strings.Count(said, "\n") != 1 {
		t.Errorf("%s\n%s", out, said)
	}
	if _, said := m.host(fault.Todo, "plan", "--quiet", empty); said != "" {
		t.Errorf("--quiet says %q", said)
	}
	out, said = m.host(fault.Todo, "plan", "--json", empty)
	var steps []struct{ Key, Action, Warning string }
	if err := json.Unmarshal([]byte(out), &steps); err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if is := s.Key == "file:/usr/local/bin/mesh-controller"; s.Action != "remove" || strings.Contains(s.Warning, warning) != is {
			t.Errorf("%+v", s)
		}
	}
	if len(steps) != 2 || said != "" {
		t.Errorf("%d steps, and %q", len(steps), said)
	}
	// What keeps it is no news.
	if _, said := m.host(0, "plan", filepath.Join(m.root, "tmp/site.json")); said != "" {
		t.Errorf("a plan that keeps it says %q", said)
	}
	for _, key := range []string{"process:mesh-controller", "unit:mesh-controller.service", "package:nox-mesh-controller", "file:/var/lib/nox-mesh-controller"} {
		m.Run(key, func(t *testing.T) {
			s := planned{}
			s.Key, s.Action = key, "remove"
			if warning := warningOf(s); warning == "" {
				t.Error("nobody is warned")
			}
			s.Key = key + "-2"
			if warning := warningOf(s); warning != "" {
				t.Error("it is somebody else's")
			}
		})
	}
}

// TestApplyTakesNoControlPlaneAwayUnasked: nothing stood between a declaration that
// does not name it and the end of a mesh.
func TestApplyTakesNoControlPlaneAwayUnasked(t *testing.T) {
	m := newMachine(t)
	m.put("var/lib/nox-mesh-controller/state.db", "")
	declared := m.put("tmp/site.json", site)
	m.host(0, "apply", declared)
	m.host(0, "apply", declared)
	empty := m.put("tmp/empty.json", `{"schema": 1, "name": "site", "resources": []}`)
	if _, said := m.host(fault.Refused, "apply", empty); !strings.Contains(said, "it would remove file:/usr/local/bin/mesh-controller") || !strings.Contains(said, "--last") {
		t.Error(said)
	}
	if _, err := os.Stat(filepath.Join(m.root, "etc/motd")); err != nil {
		t.Errorf("something was done all the same: %v", err)
	}
	m.host(0, "apply", "--last", empty)
	if _, err := os.Stat(filepath.Join(m.root, "usr/local/bin/mesh-controller")); err == nil {
		t.Error("it is still there")
	}
}

func warningOf(p planned) string { return warning(p.Step) }

func TestADeclarationThatIsNotThereHasARemedy(t *testing.T) {
	m := newMachine(t)
	for _, verb := range []string{"plan", "apply"} {
		if _, said := m.host(fault.Failed, verb, "none.json"); said != `mesh-host: cannot read declaration: there is no "none.json"; give the file, or - for standard input; mesh-host schema says what is in one`+"\n" {
			t.Errorf("%s: %s", verb, said)
		}
	}
}

// TestVerifyOfAFileThatIsNotThere is a failure: it was refused as unsigned.
func TestVerifyOfAFileThatIsNotThere(t *testing.T) {
	m := newMachine(t)
	dir := t.TempDir()
	key := filepath.Join(dir, "release.pub")
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(secret.Public())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"none", "none.bundle.tar", "none-1-1-any.pkg.tar.zst"} {
		if _, said := m.host(fault.Failed, "verify", "--trust", dir, name); said != `mesh-host: cannot verify "`+name+`": no such file`+"\n" {
			t.Errorf("%s: %s", name, said)
		}
	}
	if _, said := m.host(fault.Refused, "verify", "--trust", dir, key); !strings.Contains(said, "no signature") {
		t.Errorf("unsigned: %s", said)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	m := newMachine(t)
	if out, _ := m.host(0, "history"); out != "nothing was applied yet\n" {
		t.Errorf("%s", out)
	}
	for i := range 23 {
		m.host(0, "apply", m.put("tmp/d.json", strings.ReplaceAll(site, "hello", strings.Repeat("x", i+1))))
	}
	lines := func(want, said int, args ...string) {
		t.Helper()
		out, err := m.host(0, append([]string{"history"}, args...)...)
		if n := strings.Count(out, "\n") - 1; n != want || strings.Count(err, "\n") != said {
			t.Errorf("%v: %d passes, want %d; %q", args, n, want, err)
		}
	}
	lines(20, 1)
	lines(20, 0, "--quiet")
	lines(3, 1, "-n", "3")
	lines(23, 0, "--limit", "0")
	lines(23, 0, "--limit", "100")
	if _, said := m.host(0, "history", "-n", "3"); said != "20 passes are older; --limit 0 lists all\n" {
		t.Errorf("%s", said)
	}
	out, _ := m.host(0, "history", "--json", "--limit", "2")
	var list []struct{ Finished string }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 2 || list[0].Finished < list[1].Finished {
		t.Errorf("%v, %+v", err, list)
	}
}

func TestAnUnknownDistributionIsSaidSo(t *testing.T) {
	m := newMachine(t)
	line := func() string {
		t.Helper()
		out, _ := m.host(0, "profile")
		for line := range strings.Lines(out) {
			if rest, ok := strings.CutPrefix(line, "distribution "); ok {
				return strings.TrimSpace(rest)
			}
		}
		t.Fatalf("no distribution in\n%s", out)
		return ""
	}
	if got := line(); got != "unknown" {
		t.Errorf("without os-release: %q", got)
	}
	m.put("etc/os-release", "ID=void\n")
	if got := line(); got != "void" {
		t.Errorf("without a version: %q", got)
	}
	m.put("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n")
	if got := line(); got != "debian 12" {
		t.Errorf("%q", got)
	}
}

// TestTheArchitectureHasOneName: that of uname(1), of packages and of bundles.
func TestTheArchitectureHasOneName(t *testing.T) {
	m := newMachine(t)
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"profile"}, {"profile", "--json"}} {
		out, _ := m.host(0, args...)
		if strings.Contains(out, "amd64") || strings.Contains(out, "arm64") || !strings.Contains(out, "x86_64") && !strings.Contains(out, "aarch64") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	m := newMachine(t)
	for _, verb := range []string{"install", "uninstall", "retire", "bootstrap", "enrol", "status", "owned", "history", "logs", "metrics", "profile", "plan", "apply", "reconcile",
		"verify", "bundle inspect", "bundle verify", "schema", "run", "version", "completion", "completion bash", "help"} {
		if out, _ := m.host(0, append(strings.Fields(verb), "--help")...); !strings.Contains(out, "\nExamples:\n  ") {
			t.Errorf("%s has none", verb)
		}
	}
}
