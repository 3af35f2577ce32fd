package service_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A state that cannot be written, on a disk that is full, costs no link: whoever
// wants something written is told to come again, and it goes on when there is room.
func TestD09AFullDiskCostsNoLink(t *testing.T) {
	m := newMachine(t)
	if err := os.MkdirAll(m.l.ControllerState(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", m.l.ControllerState(), "tmpfs", 0, "size=6m,mode=0700"); err != nil {
		if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
			t.Fatal(err)
		}
		t.Skipf("no small file system can be made here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(m.l.ControllerState(), unix.MNT_DETACH) })
	m.serve()
	one, two := m.joined("one"), m.joined("two")
	a, err := one.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := two.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	await(t, a, link.MessageDeclaration)
	await(t, b, link.MessageDeclaration)

	ballast := filepath.Join(m.l.ControllerState(), "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	large := link.Having{Inventory: profile.Inventory{Owned: []string{strings.Repeat("x", 2<<20)}}}
	for range 3 {
		status, answer, err := one.Post(t.Context(), link.PathInventory, large)
		if err != nil || status != 503 || answer.Code != link.StoreUnavailable || answer.Retry != "after 30 s" {
			t.Fatalf("%d %+v, %v", status, answer, err)
		}
	}
	doc := []byte(strings.Replace(motd, "hi", strings.Repeat("x", 1<<20), 1))
	if _, err := admin.Declare.Ask(t.Context(), m.cl, admin.Declaration{Name: "motd", Document: doc, Placement: []string{"every"}}); err == nil ||
		fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "no space") {
		t.Errorf("%v", err)
	}
	if s := ask(m, admin.GetStatus.Ask, admin.None{}); s.Links != 2 || s.Nodes["enrolled"] != 2 || len(s.Modules) != 0 {
		t.Errorf("%+v", s)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	declare(m, "motd", motd, "every")
	for name, s := range map[string]interface {
		Await(link.MessageType) (link.Message, error)
	}{"one": a, "two": b} {
		got, err := s.Await(link.MessageDeclaration)
		if err != nil || !strings.Contains(string(got.Declaration.Document), "motd/m") {
			t.Errorf("%s, on the same link: %+v, %v", name, got, err)
		}
	}
}
