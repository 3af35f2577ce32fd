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
	"strings"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// An engine is a container runtime. Its socket may be there without its program
// (of one in another place), and the program without the socket (it is down).
type engine struct{ name, socket, program string }

var engines = []engine{
	{"podman", "/run/podman/podman.sock", "/usr/bin/podman"},
	{"docker", "/run/docker.sock", "/usr/bin/dockerd"},
}

// engine is the one that declared containers would run on: the first that has a
// socket, else the first whose program is there.
func (s source) engine() engine {
	for _, e := range engines {
		if isSocket(s.files, e.socket) {
			return e
		}
	}
	for _, e := range engines {
		if exists(s.files, e.program) {
			return e
		}
	}
	return engine{}
}

// isSocket looks closer: docker makes a directory where the socket is to be when
// it is asked to hand on one that is not there.
func isSocket(l layout.Layout, path string) bool {
	fi, err := os.Stat(l.Path(path))
	return err == nil && fi.Mode().Type() == fs.ModeSocket
}

// engineVersion asks the runtime that runs. The version of a program that may
// not run, or no more, says nothing of what a container would run on.
func (s source) engineVersion(ctx context.Context) (string, error) {
	e := s.engine()
	switch {
	case e.name == "":
		return "", nil
	case !isSocket(s.files, e.socket):
		return "", fmt.Errorf("it does not run: there is no socket %q", s.files.Path(e.socket))
	}
	version, err := s.asked.version(ctx, s.files.Path(e.socket), s.files.Path(e.program))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("only its user may ask it at %q", s.files.Path(e.socket))
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
