package service_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/repository/seedtest"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestNewMachinesAreServedWhereTheFileSays, and nowhere when it says nothing.
func TestNewMachinesAreServedWhereTheFileSays(t *testing.T) {
	m := newMachine(t)
	p, err := seedtest.New()
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Release("x86_64", 7)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.TrustedBy(m.l); err != nil {
		t.Fatal(err)
	}
	if err := r.Lay(m.l.ControllerSeed()); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(m.l.ControllerState(), 0o700); err != nil {
		t.Fatal(err)
	}
	stop := m.serve()
	if s := ask(m, admin.GetStatus.Ask, admin.None{}); s.Repository.Listen != "" || s.Repository.Serves != nil {
		t.Errorf("off: %+v", s.Repository)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	configure(m, `repository_listen = "127.0.0.1:0"`)
	stop = m.serve()
	s := ask(m, admin.GetStatus.Ask, admin.None{})
	if len(s.Repository.Serves) != 1 || s.Repository.Serves[0].Version != "1.0.7" {
		t.Fatalf("on: %+v, %q", s.Repository, s.Warnings)
	}
	const db = "arch/x86_64/nox-mesh.db"
	a, err := http.Get("http://" + s.Repository.Listen + "/" + db)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if b, err := io.ReadAll(a.Body); err != nil || string(b) != r.Files[db] {
		t.Errorf("%q, %v", b, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	// A port that somebody has.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	configure(m, fmt.Sprintf("repository_listen = %q", l.Addr()))
	err = service.Run(context.Background(), m.l, clock.System, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) || !strings.Contains(fault.RemedyOf(err), "repository_listen") || strings.Contains(fault.RemedyOf(err), "set listen") {
		t.Errorf("%v: %s", err, fault.RemedyOf(err))
	}
}

// configure has the control plane listen on a port of its own, and what more says.
func configure(m *machine, more string) {
	m.t.Helper()
	if err := os.WriteFile(m.l.ControllerConfig(), []byte("listen = \"127.0.0.1:0\"\n"+more+"\n"), 0o644); err != nil {
		m.t.Fatal(err)
	}
}
