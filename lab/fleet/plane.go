package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Plane is a real control plane.
type Plane struct {
	// Binary is mesh-controller; Root is the folder that stands for its machine.
	Binary, Root string
	// Listen and Address are what it is configured with, Address alone by default.
	Listen, Address string
	// Memory limits it and all that it runs, in bytes, and then it has two
	// processors; zero is no limit.
	Memory int64
	// Env is added to its environment.
	Env []string

	// found: it knows its address.
	found   bool
	group   *group
	process *exec.Cmd
	ended   chan struct{}
}

// Log is the file that it logs to, in all its lives.
func (p *Plane) Log() string { return filepath.Join(p.Root, "controller.log") }

func (p *Plane) layout() layout.Layout { return layout.Layout{Root: p.Root} }

// Start starts it and returns how long it took until it answered.
func (p *Plane) Start(ctx context.Context) (time.Duration, error) {
	if p.Address == "" {
		p.Address = Address
	}
	if p.Listen == "" {
		p.Listen = p.Address
	}
	config := p.layout().ControllerConfig()
	if _, err := os.Stat(config); err != nil {
		if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
			return 0, err
		}
		if err := os.WriteFile(config, fmt.Appendf(nil, "listen = [%q]\n", p.Listen), 0o644); err != nil {
			return 0, err
		}
	}
	if p.Memory > 0 && p.group == nil {
		g, err := newGroup(p.Memory)
		if err != nil {
			return 0, fmt.Errorf("cannot limit the control plane: %w", err)
		}
		p.group = g
	}
	log, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	args := p.group.enter(p.Binary, "serve", "--root", p.Root)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, p.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	p.process, p.ended = cmd, make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	for {
		// The socket for commands is the last thing it opens.
		if connects(p.layout().ControllerSocket()) {
			return time.Since(began), nil
		}
		select {
		case <-p.ended:
			return 0, fmt.Errorf("the control plane ended: %v; see %s", cmd.ProcessState, p.Log())
		default:
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return 0, errors.Join(err, p.Stop(syscall.SIGKILL))
		}
	}
}

// Stop ends it with a signal, and returns when it has ended.
func (p *Plane) Stop(how syscall.Signal) error {
	if p.process == nil {
		return nil
	}
	_ = p.process.Process.Signal(how)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		_ = p.process.Process.Kill()
		<-p.ended
		return fmt.Errorf("the control plane did not end within 30 s of %v", how)
	}
	p.process = nil
	return nil
}

// Kill kills it, from any goroutine and at any time; Stop is to follow.
func (p *Plane) Kill() { kill(p.process) }

func kill(cmd *exec.Cmd) {
	if cmd != nil {
		_ = cmd.Process.Kill()
	}
}

// connects says whether somebody listens on a socket.
func connects(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// Close ends it, and what it was limited by.
func (p *Plane) Close() error { return errors.Join(p.Stop(syscall.SIGKILL), p.group.remove()) }

// Alive says whether the process of the last Start still runs.
func (p *Plane) Alive() bool {
	if p.process == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// PID is that of the process of the last Start.
func (p *Plane) PID() int { return p.process.Process.Pid }

// Ask runs a command of mesh-controller and returns what it prints.
func (p *Plane) Ask(ctx context.Context, args ...string) (string, error) {
	return p.tell(ctx, "", args...)
}

func (p *Plane) tell(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.Binary, append([]string{"--root", p.Root}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("mesh-controller %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out.String(), nil
}

// Token makes a token for so many machines. The first one says where the control
// plane is.
func (p *Plane) Token(ctx context.Context, uses int, more ...string) (link.Token, error) {
	if !p.found {
		if _, err := p.Ask(ctx, "address", "add", p.Address); err != nil {
			return link.Token{}, err
		}
		p.found = true
	}
	text, err := p.Ask(ctx, append([]string{"token", "create", "--ttl", "24h", "--uses", fmt.Sprint(uses)}, more...)...)
	if err != nil {
		return link.Token{}, err
	}
	return link.ParseToken([]byte(text))
}

// A Known is a node as the control plane knows it.
type Known struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	State     string `json:"state"`
	Connected bool   `json:"connected"`
	Applied   uint64 `json:"applied"`
	Wanted    uint64 `json:"wanted"`
}

// Nodes is who is in the mesh.
func (p *Plane) Nodes(ctx context.Context) (ns []Known, err error) {
	out, err := p.Ask(ctx, "nodes", "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &ns)
	}
	return ns, err
}

// Declare declares one file of that text as module name.
func (p *Plane) Declare(ctx context.Context, name, text string, on ...string) error {
	doc, err := json.Marshal(map[string]any{"schema": 1, "name": name, "resources": []any{
		map[string]any{"id": "page", "type": "file", "path": "/srv/" + name, "content": text},
	}})
	if err != nil {
		return err
	}
	file := filepath.Join(p.Root, name+".json")
	if err := os.WriteFile(file, doc, 0o600); err != nil {
		return err
	}
	args := []string{"declare", name, file}
	for _, o := range on {
		args = append(args, "--on", o)
	}
	_, err = p.Ask(ctx, args...)
	return err
}
