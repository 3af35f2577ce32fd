package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A runtime is one that was asked for its version.
type runtime struct{ client }

// newest is the version of the API this was written for. An older runtime is
// spoken to in its own; podman 4 has 1.41, docker 29 takes nothing below 1.44.
const newest = 44

// oldest is the version that has all that is needed here.
const oldest = 40

func isUnsupported(err error) bool { return errors.As(err, new(resource.Unsupported)) }

// runtime chooses the machine's runtime. Where there are two, it stays with the
// one that has our container, so that one that is installed later does not get
// a second one.
func (k *Kind) runtime(ctx context.Context, name string) (*runtime, error) {
	sockets, err := k.sockets()
	if err != nil {
		return nil, err
	}
	if len(sockets) > 1 {
		for _, s := range sockets {
			r, err := k.connect(ctx, s)
			if err != nil {
				continue // and the first one's error is said below
			}
			if c, err := r.inspect(ctx, name); err == nil && c != nil && c.madeFor(name) {
				return r, nil
			}
		}
	}
	return k.connect(ctx, sockets[0])
}

// sockets are those there are, the preferred one first.
func (k *Kind) sockets() ([]string, error) {
	if k.Socket != "" {
		return []string{k.Socket}, nil
	}
	up, down, err := profile.Engines(k.Layout)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot look for the container runtime: %w", err)
	case len(up) == 0 && len(down) == 0:
		return nil, resource.Unsupported{Why: "there is no container runtime here (neither podman nor docker)"}
	case len(up) == 0:
		return nil, fault.Failedf("the container runtime does not run: there is no socket %q", down[0].Socket).
			Hint("start it, under systemd with \"systemctl enable --now podman.socket\" or \"docker.service\"")
	}
	var out []string
	for _, e := range up {
		out = append(out, e.Socket)
	}
	return out, nil
}

// connect agrees with the runtime at the socket on a version of the API. It asks
// each time, since a runtime is upgraded under a host that runs for years.
func (k *Kind) connect(ctx context.Context, socket string) (*runtime, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c := client{socket: socket}
	says, err := c.ping(ctx, &c.near)
	if err != nil {
		return nil, err
	}
	// What is called Server is "Libpod/4.3.1 (linux)", or "Docker/…".
	c.podman = strings.HasPrefix(says.Get("Server"), "Libpod/")
	version := says.Get("Api-Version")
	has, err := minor(version)
	if err != nil {
		return nil, err
	}
	least := 0
	if has > newest {
		// A runtime of years to come takes no version as old as ours: then its
		// oldest is what differs least.
		if least, err = k.least(ctx, c, version); err != nil {
			return nil, err
		}
	}
	if has < oldest {
		return nil, fault.Failedf("the container runtime at %q has version %s of the API, and 1.%d is needed", socket, line(version), oldest)
	}
	c.version = fmt.Sprintf("/v1.%d", max(min(has, newest), least))
	return &runtime{c}, nil
}

// ping returns what the runtime says about itself before any version is agreed on.
func (c client) ping(ctx context.Context, near *bool) (says http.Header, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: "/_ping", plain: true, header: &says, near: near}, nil)
	return says, err
}

// least is the oldest version the runtime takes. To say so, it asks its parts
// for theirs: once for each version of it is enough.
func (k *Kind) least(ctx context.Context, c client, version string) (int, error) {
	k.mu.Lock()
	least, ok := k.leasts[c.socket+" "+version]
	k.mu.Unlock()
	if ok {
		return least, nil
	}
	var v struct{ MinAPIVersion string }
	err := c.call(ctx, request{method: http.MethodGet, path: "/version", plain: true}, func(r io.Reader) error { return decode(r, &v) })
	if err != nil || v.MinAPIVersion == "" {
		return 0, err
	}
	if least, err = minor(v.MinAPIVersion); err != nil {
		return 0, err
	}
	k.mu.Lock()
	k.leasts[c.socket+" "+version] = least
	k.mu.Unlock()
	return least, nil
}

// minor is the 41 of "1.41".
func minor(version string) (int, error) {
	s, ok := strings.CutPrefix(version, "1.")
	n, err := strconv.Atoi(s)
	if !ok || err != nil || n < 0 {
		return 0, fmt.Errorf("the container runtime says that its version is %q", line(version))
	}
	return n, nil
}
