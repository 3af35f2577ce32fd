package enrol

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/lab/fleet"
)

const hereIP = fleet.Here

func TestMain(m *testing.M) {
	fleet.Main(m, func() { os.RemoveAll(bin) })
}

var bin string

// programs builds the two, once.
var programs = sync.OnceValue(func() error {
	var err error
	if bin, err = os.MkdirTemp("", "enrol-bin-"); err != nil {
		return err
	}
	return compile(bin)
})

func compile(into string, flags ...string) error {
	args := append([]string{"build", "-o", into + "/"}, flags...)
	cmd := exec.Command("go", append(args, "../../host/cmd/mesh-host", "../../controlplane/cmd/mesh-controller")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// A site is a control plane and a folder for the roots of its hosts.
type site struct {
	t     *testing.T
	top   string
	bin   string
	plane *fleet.Plane
	hosts int
}

// raise starts a control plane that listens there and says it is at address.
func raise(t *testing.T, listen, address string, env ...string) *site {
	t.Helper()
	fleet.Require(t)
	must(t, programs())
	top, err := os.MkdirTemp("", "enrol-") // short: the path of a socket has 107 bytes, unix(7)
	must(t, err)
	s := &site{t: t, top: top, bin: bin}
	s.plane = &fleet.Plane{Binary: filepath.Join(bin, "mesh-controller"), Root: filepath.Join(top, "c"), Listen: listen, Address: address, Env: env}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(s.plane.Log())
			t.Logf("the control plane's log:\n%s", last(log))
		}
		must(t, s.plane.Close())
		must(t, os.RemoveAll(top))
	})
	_, err = s.plane.Start(t.Context())
	must(t, err)
	return s
}

func last(log []byte) []byte { return log[max(0, len(log)-8<<10):] }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// host is one more machine; its host is not started.
func (s *site) host(env ...string) *fleet.Host {
	s.hosts++
	h := &fleet.Host{Binary: filepath.Join(s.bin, "mesh-host"), Root: filepath.Join(s.top, fmt.Sprint("h", s.hosts)), Env: env}
	s.t.Cleanup(func() {
		if s.t.Failed() {
			if log, err := os.ReadFile(h.Log()); err == nil {
				s.t.Logf("the log of %s:\n%s", h.Root, last(log))
			}
		}
		must(s.t, h.Stop(9))
	})
	return h
}

func (s *site) token(uses int, more ...string) link.Token {
	s.t.Helper()
	t, err := s.plane.Token(s.t.Context(), uses, more...)
	must(s.t, err)
	return t
}

func (s *site) nodes() []fleet.Known {
	s.t.Helper()
	ns, err := s.plane.Nodes(s.t.Context())
	must(s.t, err)
	return ns
}

// A tally is what `token list` says of a token.
type tally struct {
	ID      string    `json:"id"`
	Left    int       `json:"left"`
	Code    link.Code `json:"code"`
	Holders []struct {
		Node string `json:"node"`
		Used bool   `json:"used"`
	} `json:"holders"`
}

func (s *site) tokens() map[string]tally {
	s.t.Helper()
	out, err := s.plane.Ask(s.t.Context(), "token", "list", "--json")
	must(s.t, err)
	var all []tally
	must(s.t, json.Unmarshal([]byte(out), &all))
	by := map[string]tally{}
	for _, k := range all {
		by[k.ID] = k
	}
	return by
}

// identity is what is read here of identity.json.
type identity struct {
	State string `json:"state"`
	Node  string `json:"node_id"`
	Name  string `json:"name"`
	Key   []byte `json:"key"`
}

func identityOf(h *fleet.Host) (id identity, err error) {
	b, err := os.ReadFile(h.Layout().HostIdentity())
	if err == nil {
		err = json.Unmarshal(b, &id)
	}
	return id, err
}
