package firstnode

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// journeySteps are what a person does with a release, in their order.
func (n *Node) journeySteps() []step {
	root := n.path("root")
	return []step{
		{"unpack the floor", func(ctx context.Context) error {
			tarball, err := onlyMatch(n.dist("nox-mesh-host-*.tar.gz"))
			if err != nil {
				return err
			}
			if err := durable.MkdirAll(n.path("floor"), 0o700); err != nil {
				return err
			}
			_, err = n.run(ctx, nil, "tar", "-xzf", tarball, "-C", n.path("floor"))
			return err
		}},
		{"install the host", func(ctx context.Context) error {
			host, err := onlyMatch(n.path("floor/*/mesh-host"))
			if err != nil {
				return err
			}
			if err := durable.MkdirAll(root, 0o755); err != nil {
				return err
			}
			_, err = n.run(ctx, nil, host, "install", "--root", root)
			return err
		}},
		{"choose the control plane's addresses", func(context.Context) error { return n.configure() }},
		{"start the host", n.startHost},
		{"bootstrap from the bundle", func(ctx context.Context) error {
			bundle, err := onlyMatch(n.dist("*.bundle.tar"))
			if err != nil {
				return err
			}
			_, err = n.run(ctx, nil, n.hostBinary(), "bootstrap", "--root", root, bundle)
			return err
		}},
		{"take a token and enrol with it", func(ctx context.Context) error {
			token, err := n.run(ctx, nil, n.controllerBinary(), "token", "create", "--root", root)
			if err != nil {
				return err
			}
			_, err = n.run(ctx, strings.NewReader(token), n.hostBinary(), "enrol", "--root", root, "-")
			return err
		}},
		{"hear from the control plane", n.awaitLink},
	}
}

// configure has the control plane listen on free ports of loopback, for nodes and
// for new machines; the file is the operator's, so no bundle brings it.
func (n *Node) configure() error {
	text := ""
	for _, key := range []string{"listen", "repository_listen"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close() // when the other has a port of its own
		text += fmt.Sprintf("%s = [%q]\n", key, l.Addr())
	}
	file := n.machine().ControllerConfig()
	if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(file, []byte(text), 0o644)
}

// startHost does what a service manager would: it starts `mesh-host run` in a
// session of its own, remembers it, and waits until it answers.
func (n *Node) startHost(ctx context.Context) error {
	log, err := os.OpenFile(n.log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(n.hostBinary(), "run", "--root", n.path("root"))
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	host, ok := look(cmd.Process.Pid)
	if !ok {
		return n.hostEnded()
	}
	if err := n.writeMark(mark{Host: host, Raised: n.readMark().Raised}); err != nil {
		return err
	}
	d := &door.Client{Path: n.machine().HostSocket()}
	return until(ctx, 30*time.Second, func() (bool, error) {
		if !host.lives() {
			return false, n.hostEnded()
		}
		return d.Greet(ctx) == nil, nil // not yet, or up
	})
}

// hostEnded shows the log of a host that is no more.
func (n *Node) hostEnded() error {
	b, err := os.ReadFile(n.log())
	if err == nil {
		fmt.Fprintf(n.Std.Err, "\n$ cat %s\n%s", n.log(), b)
	}
	return fault.Failedf("the host ended by itself")
}

// report is what is read here of `mesh-host status --json`.
type report struct {
	State       string `json:"state"`
	Declaration struct {
		Source string `json:"source"`
	} `json:"declaration"`
}

// awaitLink returns when the node is enrolled and has what it shall be from the
// control plane, not from the bundle any more.
func (n *Node) awaitLink(ctx context.Context) error {
	var last report
	err := until(ctx, time.Minute, func() (bool, error) {
		if !n.host().lives() {
			return false, n.hostEnded()
		}
		out, err := n.run(ctx, nil, n.hostBinary(), "status", "--root", n.path("root"), "--json")
		if err != nil {
			return false, err
		}
		last = report{}
		if err := json.Unmarshal([]byte(out), &last); err != nil {
			return false, fmt.Errorf("mesh-host status --json is no JSON: %w", err)
		}
		return last.State == "enrolled" && last.Declaration.Source == "link", nil
	})
	if err != nil {
		return fmt.Errorf("the state is %q and the declaration from %q: %w", last.State, last.Declaration.Source, err)
	}
	return nil
}
