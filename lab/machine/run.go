package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Run runs a command inside the machine as root and returns its standard
// output without the last newline. The error of a command that failed holds
// all it printed to standard error; ExitCode reads it.
func (m *Machine) Run(ctx context.Context, args ...string) (string, error) {
	return m.Pipe(ctx, nil, args...)
}

// Pipe is Run with a standard input.
func (m *Machine) Pipe(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	pid, err := systemdPID(m.lab.name, m.name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(pid), "-a", "--"}, args...)...)
	ownGroup(cmd)
	cmd.Env = plainEnv()
	cmd.Stdin = stdin
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(errOut.String())
		return strings.TrimSuffix(out.String(), "\n"), fmt.Errorf("%s: %s: %w: %s", m.name, strings.Join(args, " "), err, text)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// RunInUnit is Run in a transient unit of the machine's systemd: with a
// cgroup and an environment as a service has them.
func (m *Machine) RunInUnit(ctx context.Context, args ...string) (string, error) {
	return m.Run(ctx, append([]string{"systemd-run", "--quiet", "--pipe", "--wait", "--collect", "--"}, args...)...)
}

// Must is Run of a command that works; the test ends when it does not.
func (m *Machine) Must(args ...string) string {
	m.lab.t.Helper()
	out, err := m.Run(m.lab.t.Context(), args...)
	if err != nil {
		m.lab.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// ExitCode returns the exit status of the command that err is about, 0 for no
// error and -1 for one that is about something else, or a signal.
func ExitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// WriteFile makes a file inside the machine, and the folders above it.
func (m *Machine) WriteFile(path string, mode fs.FileMode, content string) {
	m.lab.t.Helper()
	m.write(path, mode, strings.NewReader(content))
}

// Put copies a file of this computer into the machine.
func (m *Machine) Put(path string, mode fs.FileMode, local string) {
	m.lab.t.Helper()
	f, err := os.Open(local)
	if err != nil {
		m.lab.t.Fatalf("cannot put a file into %q: %v", m.name, err)
	}
	defer f.Close()
	m.write(path, mode, f)
}

func (m *Machine) write(path string, mode fs.FileMode, content io.Reader) {
	m.lab.t.Helper()
	_, err := m.Pipe(m.lab.t.Context(), content, "install", "-D", "-m", fmt.Sprintf("%o", mode.Perm()), "/dev/stdin", path)
	if err != nil {
		m.lab.t.Fatalf("cannot write %q: %v", path, err)
	}
}

// ReadFile returns what is in a file of the machine.
func (m *Machine) ReadFile(path string) string {
	m.lab.t.Helper()
	pid, err := systemdPID(m.lab.name, m.name)
	if err != nil {
		m.lab.t.Fatalf("cannot read %q: %v", path, err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/root%s", pid, path))
	if err != nil {
		m.lab.t.Fatalf("cannot read %q of %q: %v", path, m.name, err)
	}
	return string(b)
}
