package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Host is a real mesh-host in a root of its own.
type Host struct {
	// Binary is mesh-host, Root the folder that stands for its machine.
	Binary, Root string
	// Env is added to its environment, and to that of its commands.
	Env []string

	process *exec.Cmd
	ended   chan struct{}
}

// Layout is where its files are.
func (h *Host) Layout() layout.Layout { return layout.Layout{Root: h.Root} }

// Log is the file that it logs to, in all its lives.
func (h *Host) Log() string { return filepath.Join(h.Root, "host.log") }

func (h *Host) env() []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, h.Env...)
}

// Start does what a service manager would, and returns when the host answers.
func (h *Host) Start(ctx context.Context) error {
	// As `mesh-host install` leaves it.
	if err := os.MkdirAll(h.Layout().State(), 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(h.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(h.Binary, "run", "--root", h.Root)
	cmd.Env = h.env()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	h.process, h.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for late := time.Now().Add(time.Minute); ; {
		if connects(h.Layout().HostSocket()) {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("the host ended: %v; see %s", cmd.ProcessState, h.Log())
		default:
		}
		if err := sleep(ctx, 2*time.Millisecond); err != nil || time.Now().After(late) {
			return errors.Join(fmt.Errorf("the host does not answer; see %s", h.Log()), err, h.Stop(syscall.SIGKILL))
		}
	}
}

// Kill kills it, from any goroutine and at any time; Stop is to follow.
func (h *Host) Kill() { kill(h.process) }

// Stop ends it with a signal, and returns when it has ended.
func (h *Host) Stop(how syscall.Signal) error {
	if h.process == nil {
		return nil
	}
	_ = h.process.Process.Signal(how)
	select {
	case <-h.ended:
		h.process = nil
		return nil
	case <-time.After(30 * time.Second):
		_ = h.process.Process.Kill()
		<-h.ended
		h.process = nil
		return fmt.Errorf("the host did not end within 30 s of %v", how)
	}
}

// Command is a command of mesh-host, not started.
func (h *Host) Command(ctx context.Context, stdin io.Reader, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.Binary, append([]string{"--root", h.Root}, args...)...)
	cmd.Env, cmd.Stdin = h.env(), stdin
	return cmd
}

// Ask runs a command to its end and returns what it prints; the error has what it
// said besides.
func (h *Host) Ask(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := h.Command(ctx, strings.NewReader(stdin), args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("mesh-host %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out.String(), nil
}
