package profile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// An Engine is a container runtime that is on a machine.
type Engine struct {
	// Name is "podman" or "docker", Socket where it is asked, Program what it is
	// started by.
	Name, Socket, Program string
}

// engines are those that are known, the preferred one first.
var engines = []Engine{
	{"podman", "/run/podman/podman.sock", "/usr/bin/podman"},
	{"docker", "/run/docker.sock", "/usr/bin/dockerd"},
}

// Engines are the container runtimes of what is under the layout's root, in the
// order in which they are used: those that can be asked, and after them those
// that cannot now, whose program is there without its socket. The socket may be
// there without the program (of one in another place).
//
// Nothing but a socket counts as one: docker makes a directory where the socket
// is to be when it is asked to hand on one that is not there. The second name of
// a socket is no second runtime: podman-docker makes docker's a link to podman's.
func Engines(l layout.Layout) (up, down []Engine, err error) {
	var sockets []os.FileInfo
	for _, e := range engines {
		e.Socket, e.Program = l.Path(e.Socket), l.Path(e.Program)
		fi, statErr := os.Stat(e.Socket)
		switch {
		case statErr == nil && fi.Mode().Type() == fs.ModeSocket:
			if !slices.ContainsFunc(sockets, func(s os.FileInfo) bool { return os.SameFile(s, fi) }) {
				up, sockets = append(up, e), append(sockets, fi)
			}
			continue
		case statErr != nil && !errors.Is(statErr, fs.ErrNotExist):
			err = errors.Join(err, statErr) // only its user may look there
		}
		if _, err := os.Stat(e.Program); err == nil {
			down = append(down, e)
		}
	}
	return up, down, err
}

// runtime is the name of the one that declared containers would run on now.
func (s source) runtime() (string, error) {
	up, down, err := Engines(s.files)
	if all := append(up, down...); len(all) > 0 {
		return all[0].Name, err
	}
	return "", err
}

// engineVersion asks the runtime that runs. The version of a program that may
// not run, or no more, says nothing of what a container would run on.
func (s source) engineVersion(ctx context.Context) (string, error) {
	up, down, err := Engines(s.files)
	switch {
	case len(up) == 0 && err != nil:
		return "", err
	case len(up) == 0 && len(down) > 0:
		return "", fmt.Errorf("it does not run: there is no socket %q", down[0].Socket)
	case len(up) == 0:
		return "", nil
	}
	e := up[0]
	version, err := s.asked.version(ctx, e.Socket, e.Program)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("only its user may ask it at %q", e.Socket)
	case late(err):
		return "", err
	case err != nil:
		return "", fmt.Errorf("it does not answer as a runtime does: %w", err)
	}
	return version, nil
}

// remembered is how long a runtime is taken at its word. A question starts
// podman's service, and an inventory is made with each report.
const remembered = time.Hour

// An answer is what a runtime said, and the socket and the program that were
// there then.
type answer struct {
	socket, program os.FileInfo
	version         string
	at              time.Time
}

// answers are the last ones, by socket.
type answers struct {
	clock clock.Clock
	mu    sync.Mutex
	last  map[string]answer
}

// version asks, unless the same runtime answered within the hour.
func (a *answers) version(ctx context.Context, socket, program string) (string, error) {
	now := answer{at: a.clock.Now()}
	now.socket, _ = os.Stat(socket)
	now.program, _ = os.Stat(program)
	a.mu.Lock()
	last, ok := a.last[socket]
	a.mu.Unlock()
	if ok && now.at.Sub(last.at) < remembered && sameFile(last.socket, now.socket) && sameFile(last.program, now.program) {
		return last.version, nil
	}
	version, err := askVersion(ctx, socket)
	if err != nil {
		return "", err
	}
	now.version = version
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		a.last = map[string]answer{}
	}
	a.last[socket] = now
	return version, nil
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// askVersion reads what a runtime calls itself when it is pinged: "Libpod/4.3.1
// (linux)", "Docker/28.2.2 (linux)". Podman's longer answer, /version, takes
// seconds: it looks up which packages its parts are of.
func askVersion(ctx context.Context, socket string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if t, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(t); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(conn, "GET /_ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxFact)), nil)
	if err != nil {
		return "", err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", answer.StatusCode)
	}
	product, rest, _ := strings.Cut(answer.Header.Get("Server"), "/")
	version, _, _ := strings.Cut(rest, " ")
	if version = clean(version); version == "" || product != "Libpod" && product != "Docker" {
		return "", errors.New("it names no version")
	}
	return version, nil
}
