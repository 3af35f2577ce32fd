package service_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/backup"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/restore"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire/wiretest"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// backup draws an open backup of the control plane that runs.
func (m *machine) backup() []byte {
	m.t.Helper()
	var b bytes.Buffer
	if err := admin.DrawBackup(m.t.Context(), m.cl, admin.Backup{}, &b); err != nil {
		m.t.Fatal(err)
	}
	return b.Bytes()
}

// restored lays an open backup down and has the control plane that runs take it up.
func (m *machine) restored(b []byte, replace bool) *restore.Order {
	m.t.Helper()
	s := ask(m, admin.GetStatus.Ask, admin.None{})
	o := restore.Options{Layout: m.l, There: restore.There{Mesh: s.Mesh, Epoch: s.Epoch}, Replace: replace, Now: clock.System.Now().UTC()}
	for _, n := range ask(m, admin.Nodes.Ask, admin.None{}) {
		o.There.Nodes = append(o.There.Nodes, backup.Node{ID: n.ID, Name: n.Name, State: n.State})
	}
	staged, err := restore.Stage(m.t.Context(), bytes.NewReader(b), o)
	if err != nil {
		m.t.Fatal(err)
	}
	ask(m, admin.TakeUp.Ask, admin.None{})
	m.await(func(s admin.Status) bool { return s.Restored != nil && s.Epoch == staged.Order.Epoch })
	return staged.Order
}

// await asks for the status until it is as it should be.
func (m *machine) await(is func(admin.Status) bool) {
	m.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for {
		if s, err := admin.GetStatus.Ask(m.t.Context(), m.cl, admin.None{}); err == nil && is(s) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			m.t.Fatalf("it does not come to that: %s", m.log.String())
		}
	}
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// joined enrols a node to its end.
func (m *machine) joined(name string) *wiretest.Node {
	m.t.Helper()
	n := m.enrol(ask(m, admin.TokenCreate.Ask, admission.TokenOptions{TTL: time.Hour, Uses: 1, Name: name}), name, "")
	if a, err := n.Ack(m.t.Context()); err != nil || a.Code != "" {
		m.t.Fatalf("%+v, %v", a, err)
	}
	return n
}

func (m *machine) moved(nodes ...*wiretest.Node) {
	m.t.Helper()
	at := ask(m, admin.AddressList.Ask, admin.None{}).Addresses[0]
	for _, n := range nodes {
		n.Address = at
	}
}

func declare(m *machine, name, doc string, on ...string) {
	m.t.Helper()
	ask(m, admin.Declare.Ask, admin.Declaration{Name: name, Document: []byte(doc), Placement: on})
}

const motd = `{"schema":1,"name":"x","resources":[{"id":"m","type":"file","path":"/etc/motd","content":"hi"}]}`

func TestD01AControlPlaneIsRestoredWhileNodesStayAsTheyAre(t *testing.T) {
	old, fresh := newMachine(t), newMachine(t)
	stopOld := old.serve()
	one := old.joined("one")
	declare(old, "motd", motd, "node=one")
	waits := ask(old, admin.TokenCreate.Ask, admission.TokenOptions{TTL: time.Hour, Uses: 1, Name: "two"})
	b := old.backup()
	declare(old, "later", strings.ReplaceAll(motd, "motd", "later"), "every")
	if err := stopOld(); err != nil {
		t.Fatal(err)
	}

	stop := fresh.serve()
	was := ask(fresh, admin.GetStatus.Ask, admin.None{})
	order := fresh.restored(b, false)
	s := ask(fresh, admin.GetStatus.Ask, admin.None{})
	if s.Mesh != one.Mesh || s.Mesh == was.Mesh || s.Epoch != 2 || s.Restored.Epoch != 1 || len(s.Modules) != 1 || s.Nodes["disconnected"]+s.Nodes["enrolled"] != 1 {
		t.Errorf("%+v", s)
	}
	fresh.moved(one)
	link1, err := one.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer link1.Close()
	if d := await(t, link1, link.MessageDeclaration).Declaration; d.Epoch != 2 || d.Mesh != one.Mesh || !strings.Contains(string(d.Document), "motd/m") {
		t.Errorf("%+v: %s", d, d.Document)
	}
	// A token of before still enrols.
	token, err := link.ParseToken([]byte(waits.Token))
	if err != nil {
		t.Fatal(err)
	}
	two, err := wiretest.New(token)
	if err != nil {
		t.Fatal(err)
	}
	fresh.moved(two)
	req, err := two.Request("two")
	if err != nil {
		t.Fatal(err)
	}
	if a, err := two.Enrol(t.Context(), token, req); err != nil || a.Code != "" || a.Epoch != 2 {
		t.Errorf("%+v, %v", a, err)
	}
	// The next start takes nothing up, and what was there is still aside.
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	fresh.serve()
	if s := ask(fresh, admin.GetStatus.Ask, admin.None{}); s.Epoch != 2 {
		t.Errorf("epoch %d", s.Epoch)
	}
	if found, _ := filepath.Glob(filepath.Join(fresh.l.ControllerState(), order.Former, "state.db")); len(found) != 1 {
		t.Errorf("nothing is aside")
	}
}

func TestD05AnOrphanIsTakenBackAndKeepsWhatItHasUntilAPersonSaysSo(t *testing.T) {
	m := newMachine(t)
	m.serve()
	first := m.joined("first")
	declare(m, "motd", motd, "every")
	b := m.backup()
	late, gone := m.joined("late"), m.joined("gone")
	s, err := late.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	await(t, s, link.MessageDeclaration)
	s.Close()

	m.restored(b, true)
	m.moved(first, late, gone)
	for range 2 {
		for _, n := range []*wiretest.Node{late, gone} {
			if _, err := n.Open(t.Context()); link.CodeOf(err) != link.NodeUnknown {
				t.Fatalf("%v", err)
			}
		}
	}
	state := func(name string) (out admin.Node) {
		t.Helper()
		for _, n := range ask(m, admin.Nodes.Ask, admin.None{}) {
			if n.Name == name || n.Hostname == name {
				return n
			}
		}
		t.Fatalf("there is no %q", name)
		return out
	}
	if n := state("late"); n.State != admin.Orphan || n.ID != late.ID || n.LastSeen.IsZero() || n.Name != "" {
		t.Errorf("%+v", n)
	}
	if st := ask(m, admin.GetStatus.Ask, admin.None{}); st.Nodes[admin.Orphan] != 2 || !strings.Contains(strings.Join(st.Warnings, " "), "2 nodes are in no record") {
		t.Errorf("%v, %q", st.Nodes, st.Warnings)
	}
	if d := ask(m, admin.Show.Ask, admin.Ref{Ref: late.ID[:8]}); d.State != admin.Orphan || d.Key == "" {
		t.Errorf("%+v", d)
	}

	// It is a node again, and told nothing.
	if n := ask(m, admin.Approve.Ask, admin.Approval{Ref: "late"}); n.Name != "late" || n.ID != late.ID || n.Hold == nil {
		t.Errorf("%+v", n)
	}
	s, err = late.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	has := link.Having{
		Inventory: profile.Inventory{Owned: []string{"file:/etc/motd", "file:/srv/precious"}},
		Profile:   &profile.Profile{Architecture: "arm64", Hostname: "late.example", Schema: 1},
	}
	if status, a, err := late.Post(t.Context(), link.PathInventory, has); err != nil || status != 200 {
		t.Fatalf("%d %+v, %v", status, a, err)
	}
	d := ask(m, admin.Show.Ask, admin.Ref{Ref: "late"})
	if strings.Join(d.Loses, " ") != "file:/srv/precious" || d.Profile.Hostname != "late.example" || strings.Join(d.Modules, " ") != "motd" || d.Hold == nil {
		t.Errorf("%+v", d)
	}
	// Another claim changes nothing of it.
	has.Profile = &profile.Profile{Architecture: "amd64", Hostname: "other"}
	if _, _, err := late.Post(t.Context(), link.PathInventory, has); err != nil {
		t.Fatal(err)
	}
	if d := ask(m, admin.Show.Ask, admin.Ref{Ref: "late"}); d.Profile.Hostname != "late.example" {
		t.Errorf("%+v", d.Profile)
	}
	declare(m, "precious", strings.ReplaceAll(motd, "/etc/motd", "/srv/precious"), "node=late")
	declare(m, "more", strings.ReplaceAll(motd, "/etc/motd", "/srv/more"), "profile.architecture=aarch64")
	if d := ask(m, admin.Show.Ask, admin.Ref{Ref: "late"}); len(d.Loses) != 0 || strings.Join(d.Modules, " ") != "more motd precious" || !d.Behind.IsZero() {
		t.Errorf("%+v", d)
	}
	if n := ask(m, admin.Approve.Ask, admin.Approval{Ref: "late"}); n.Hold != nil {
		t.Errorf("%+v", n)
	}
	// The first declaration that comes on the link has all of it: none came before.
	got := await(t, s, link.MessageDeclaration).Declaration
	for _, id := range []string{"motd/m", "precious/m", "more/m"} {
		if got.Epoch != 2 || !strings.Contains(string(got.Document), id) {
			t.Errorf("%+v: %s", got, got.Document)
		}
	}
	if _, err := admin.Approve.Ask(t.Context(), m.cl, admin.Approval{Ref: "late"}); err == nil {
		t.Error("it is approved once more")
	}

	// Another is revoked, and told so.
	if n := ask(m, admin.Revoke.Ask, admin.Leaving{Ref: "gone"}); n.State != "revoked" || n.ID != gone.ID {
		t.Errorf("%+v", n)
	}
	if _, err := gone.Open(t.Context()); link.CodeOf(err) != link.NodeRevoked {
		t.Errorf("%v", err)
	}
	if st := ask(m, admin.GetStatus.Ask, admin.None{}); st.Nodes[admin.Orphan] != 0 || len(st.Warnings) != 0 {
		t.Errorf("%v, %q", st.Nodes, st.Warnings)
	}
}

// A host that was killed between the answer of its enrolment and the ack comes
// with the ack, and becomes a node all the same.
func TestD05AnOrphanThatHasNotAckedYet(t *testing.T) {
	m := newMachine(t)
	m.serve()
	b := m.backup()
	late := m.enrol(ask(m, admin.TokenCreate.Ask, admission.TokenOptions{TTL: time.Hour, Uses: 1, Name: "late"}), "late", "")
	m.restored(b, true)
	m.moved(late)
	if a, err := late.Ack(t.Context()); err != nil || a.Code != link.NodeUnknown {
		t.Fatalf("%+v, %v", a, err)
	}
	// It says its name on the link only; the id does as well.
	ask(m, admin.Approve.Ask, admin.Approval{Ref: late.ID, Name: "web"})
	if a, err := late.Ack(t.Context()); err != nil || a.Code != "" {
		t.Errorf("%+v, %v", a, err)
	}
	if ns := ask(m, admin.Nodes.Ask, admin.None{}); len(ns) != 1 || ns[0].Name != "web" || ns[0].State != "ahead" {
		t.Errorf("%+v", ns)
	}
}

// While a backup is drawn, by somebody slow, the control plane goes on.
func TestABackupHoldsNobodyUp(t *testing.T) {
	m := newMachine(t)
	m.serve()
	m.joined("one")
	r, w := io.Pipe()
	drawn := make(chan error, 1)
	go func() {
		err := admin.DrawBackup(t.Context(), m.cl, admin.Backup{}, w)
		w.CloseWithError(err)
		drawn <- err
	}()
	if _, err := io.ReadFull(r, make([]byte, 512)); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		declare(m, "motd", strings.Replace(motd, "hi", strings.Repeat("x", 1000*i), 1), "every")
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	if err := <-drawn; err != nil {
		t.Error(err)
	}
	read, err := backup.Read(bytes.NewReader(m.backup()), func(*backup.Manifest) error { return nil }, func(backup.File, io.Reader) error { return nil })
	if err != nil || len(read.Nodes) != 1 || read.Modules[0] != "motd" {
		t.Errorf("%+v, %v", read, err)
	}
	if left, _ := filepath.Glob(filepath.Join(m.l.ControllerState(), ".backup-*")); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}
