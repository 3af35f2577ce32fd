package service_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/service"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// refused starts the control plane and wants it to refuse, in words and with a
// remedy, and to leave the state as it is.
func (m *machine) refused(t *testing.T, words ...string) {
	t.Helper()
	before, _ := os.ReadFile(m.l.ControllerStore())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // one that serves ends too
	defer cancel()
	err := service.Run(ctx, m.l, clock.System, slog.New(slog.NewTextHandler(&m.log, nil)))
	if fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) == "" {
		t.Fatalf("%v (kind %d; %s)", err, fault.KindOf(err), fault.RemedyOf(err))
	}
	for _, w := range words {
		if !strings.Contains(err.Error()+"; "+fault.RemedyOf(err), w) {
			t.Errorf("%q and its remedy %q do not say %q", err, fault.RemedyOf(err), w)
		}
	}
	if after, _ := os.ReadFile(m.l.ControllerStore()); !bytes.Equal(before, after) {
		t.Error("the state was changed")
	}
}

func TestAMeshWhoseStateIsLostIsNotFoundedAnew(t *testing.T) {
	m, other := newMachine(t), newMachine(t)
	if err := m.serve()(); err != nil {
		t.Fatal(err)
	}
	if err := other.serve()(); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(m.l.ControllerState(), "mesh.json")
	if fi, err := os.Stat(mark); err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", fi, err)
	}
	path := m.l.ControllerStore()
	keep, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	strange, err := os.ReadFile(other.l.ControllerStore())
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	m.refused(t, "is not there", "backup", mark)
	put(nil)
	m.refused(t, "is empty", "backup", mark)
	put(strange)
	m.refused(t, "is that of mesh", "backup", mark)
	put(keep)
	if err := m.serve()(); err != nil {
		t.Errorf("put back: %v", err)
	}
	// What cannot be read says that there was a mesh, and is mended by the state.
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	put(nil)
	m.refused(t, "is empty")
	put(keep)
	if err := m.serve()(); err != nil {
		t.Errorf("put back: %v", err)
	}
	if b, _ := os.ReadFile(mark); !bytes.Contains(b, []byte(`"pin"`)) {
		t.Errorf("mended: %q", b)
	}
	// On purpose.
	if err := errors.Join(os.Remove(mark), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	if err := m.serve()(); err != nil {
		t.Errorf("a new mesh: %v", err)
	}
}

func TestAStateThatIsDamagedWhileItServesEndsNothing(t *testing.T) {
	m := newMachine(t)
	stop := m.serve()
	made := ask(m, admin.TokenCreate.Ask, admission.TokenOptions{TTL: time.Hour, Uses: 1})
	n := m.enrol(made, "one", "")
	if err := os.Truncate(m.l.ControllerStore(), 4096); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := admin.Nodes.Ask(t.Context(), m.cl, admin.None{}); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%v", err)
		}
		status, a, err := n.Post(t.Context(), link.PathReports, link.Report{ID: wiretest.ID()})
		if err != nil || status != 503 || a.Code != link.StoreUnavailable {
			t.Errorf("%d %+v, %v", status, a, err)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("it stops as any other: %v", err)
	}
}
