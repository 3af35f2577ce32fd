package command

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// talking is a machine with a process "parrot", which prints what is said to it, and
// is under a real shim.
func talking(t *testing.T) (m machine, say func(line string)) {
	m = newMachine(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(m.root, "var/lib/nox-mesh/launcher")
	pipe := filepath.Join(m.root, "say")
	for _, err := range []error{os.Mkdir(dir, 0o700), same(exe, filepath.Join(dir, "mesh-host")), syscall.Mkfifo(pipe, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	to, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { to.Close() })
	const parrot = `{"schema": 1, "name": "site", "resources": [
		{"id": "program", "type": "file", "path": "/bin/parrot", "mode": "0755", "content":
		 "#!/bin/sh\nexec 3<>\"$NOX_ROOT/say\"\necho up\nwhile read -r line <&3; do [ \"$line\" != die ] || exit 3; printf '%b\\n' \"$line\"; done\n"},
		{"id": "parrot", "type": "process", "name": "parrot", "command": ["/bin/parrot"], "after": ["program"]}]}`
	t.Cleanup(func() {
		// The test's context is over.
		end := exec.Command(os.Args[0], "apply", "--root", m.root, m.put("tmp/none.json", `{"schema": 1, "name": "site", "resources": []}`))
		end.Env = append(os.Environ(), "COMMAND_TEST_PROGRAM=1")
		if said, err := end.CombinedOutput(); err != nil {
			t.Errorf("the process is left: %v\n%s", err, said)
		}
	})
	m.host(0, "apply", m.put("tmp/parrot.json", parrot))
	return m, func(line string) {
		t.Helper()
		if _, err := to.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
	}
}

// same makes the program at path what exe is; no link may lead out of a root.
func same(exe, path string) error {
	if os.Link(exe, path) == nil {
		return nil
	}
	b, err := os.ReadFile(exe)
	return errors.Join(err, os.WriteFile(path, b, 0o755))
}

// program is mesh-host as a program of its own, whose output is read.
func (m machine) program(args ...string) (cmd *exec.Cmd, out *bufio.Reader, unread func()) {
	m.Helper()
	cmd = exec.Command(os.Args[0], append([]string{"--root", m.root}, args...)...)
	cmd.Env = append(os.Environ(), "COMMAND_TEST_PROGRAM=1")
	cmd.Stderr = os.Stderr
	r, err := cmd.StdoutPipe()
	if err != nil {
		m.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.Fatal(err)
	}
	stuck := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	m.Cleanup(func() { stuck.Stop(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewReader(r), func() { r.Close() }
}

func expect(t *testing.T, out *bufio.Reader, want ...string) {
	t.Helper()
	for _, line := range want {
		got, err := out.ReadString('\n')
		if err != nil || !strings.Contains(got, line) {
			t.Fatalf("%q, want %q, %v", got, line, err)
		}
	}
}

func TestLogsAreFollowedOverARestart(t *testing.T) {
	m, say := talking(t)
	cmd, out, _ := m.program("logs", "parrot", "--follow")
	expect(t, out, "up")
	say("hello")
	expect(t, out, "hello")
	say("die")
	expect(t, out, "exited with 3", "up")
	say("again")
	expect(t, out, "again")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(out); err != nil || len(rest) != 0 {
		t.Errorf("%q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C ends it with %v", err)
	}
	// And what it said is there without it.
	all, _ := m.host(0, "logs", "parrot")
	if lines := strings.Split(all, "\n"); len(lines) != 6 || lines[1] != "hello" || lines[4] != "again" {
		t.Errorf("%q", all)
	}
	if out, _ := m.host(0, "logs", "parrot", "-n", "1"); out != "again\n" {
		t.Errorf("%q", out)
	}
	if out, _ := m.host(0, "logs", "parrot", "-n", "1", "--json"); out != `{"text":"again"}`+"\n" {
		t.Errorf("%q", out)
	}
}

// TestASilentFollowerEndsWithItsReader: `logs -f | head -1`, of a process that says
// nothing more.
func TestASilentFollowerEndsWithItsReader(t *testing.T) {
	m, _ := talking(t)
	cmd, out, unread := m.program("logs", "parrot", "-f")
	expect(t, out, "up")
	unread()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func TestAFollowerEndsWithTheProcess(t *testing.T) {
	m, _ := talking(t)
	cmd, out, _ := m.program("logs", "parrot", "-f", "--quiet")
	expect(t, out, "up")
	m.host(0, "apply", m.put("tmp/none.json", `{"schema": 1, "name": "site", "resources": []}`))
	if rest, err := io.ReadAll(out); err != nil || strings.Contains(string(rest), "up") {
		t.Errorf("%q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// A terminal sees nothing that could drive it; a pipe gets each byte.
func TestForeignOutputDrivesNoTerminal(t *testing.T) {
	m := newMachine(t)
	const said = "grün\n\x1b]0;title\x07\xff \u009b2J\n"
	m.put("var/lib/nox-mesh/process/web/output.log", said)
	if out, _ := m.host(0, "logs", "web"); out != said {
		t.Errorf("a pipe gets %q", out)
	}
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("script is not here: no terminal")
	}
	cmd := exec.CommandContext(t.Context(), script, "-qec", os.Args[0]+" logs web --root "+m.root, "/dev/null")
	cmd.Env = append(os.Environ(), "COMMAND_TEST_PROGRAM=1")
	out, err := cmd.Output()
	if want := "grün\r\n\uFFFD]0;title\uFFFD\uFFFD \uFFFD2J\r\n"; err != nil || string(out) != want {
		t.Errorf("a terminal gets %q, want %q, %v", out, want, err)
	}
	if out, _ := m.host(0, "logs", "web", "--json"); out != `{"text":"grün"}`+"\n"+`{"text":"\u001b]0;title\u0007\ufffd \u009b2J"}`+"\n" {
		t.Errorf("%q", out)
	}
}

func TestLogsOfNothing(t *testing.T) {
	m := newMachine(t)
	m.put("var/lib/nox-mesh/process/web/output.log", "hello\n")
	for _, c := range []struct {
		kind fault.Kind
		args []string
		says string
	}{
		{fault.Failed, []string{"wbe"}, `mesh-host: cannot show logs: there is no process "wbe" here; name one that is: web`},
		{fault.Usage, []string{"mesh-host"}, `mesh-host: cannot show logs: "mesh-host" is the host itself; journalctl -u mesh-host`},
		{fault.Usage, []string{"web", "--since", "soon"}, `mesh-host: cannot read --since "soon": it is no time; say how long ago`},
		{fault.Failed, []string{"web", "--since", "1h"}, `mesh-host: cannot show logs of "web" since a time: without systemd its output is kept without times; name how many`},
		{fault.Usage, nil, ""},
		{fault.Usage, []string{"web", "-n", "-1"}, ""},
	} {
		if _, said := m.host(c.kind, append([]string{"logs"}, c.args...)...); !strings.HasPrefix(said, c.says) {
			t.Errorf("%q: %s", c.args, said)
		}
	}
}

func TestAMomentIsReadAsPeopleWriteIt(t *testing.T) {
	zone := time.FixedZone("x", 3600)
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, zone)
	for text, want := range map[string]time.Time{
		"90s":                  now.Add(-90 * time.Second),
		"0s":                   now,
		"2h30m":                now.Add(-150 * time.Minute),
		"2026-05-03":           time.Date(2026, 5, 3, 0, 0, 0, 0, zone),
		"2026-05-03 14:15":     time.Date(2026, 5, 3, 14, 15, 0, 0, zone),
		"2026-05-03 14:15:16":  time.Date(2026, 5, 3, 14, 15, 16, 0, zone),
		"2026-05-03T14:15:16Z": time.Date(2026, 5, 3, 14, 15, 16, 0, time.UTC),
	} {
		if got, err := moment(now, text); err != nil || !got.Equal(want) {
			t.Errorf("%s is %s, want %s, %v", text, got, want, err)
		}
	}
	for _, bad := range []string{"-1h", "1", "yesterday", "2026-13-01"} {
		if got, err := moment(now, bad); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s is %s, %v", bad, got, err)
		}
	}
}
