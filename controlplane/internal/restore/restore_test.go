package restore_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/backup"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/restore"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// plane is what a control plane leaves on a machine when it stops: a mesh, nodes, a
// module that names content, and that.
type plane struct {
	layout.Layout
	mesh *state.Mesh
	pin  string
}

func newPlane(t *testing.T, nodes ...string) plane {
	t.Helper()
	p := plane{Layout: layout.Layout{Root: t.TempDir()}}
	must(t, os.MkdirAll(p.ControllerState(), 0o700))
	store, err := state.Open(p.ControllerStore())
	must(t, err)
	defer store.Close()
	mesh, authority, err := admission.Found(store, clock.At(start))
	must(t, err)
	p.mesh, p.pin = mesh, authority.Pin()
	b, err := json.Marshal(state.Founded{Mesh: mesh.ID, Pin: p.pin})
	must(t, err)
	must(t, durable.WriteFile(filepath.Join(p.ControllerState(), "mesh.json"), b, 0o600))
	blobs, err := content.Open(p.ControllerContent())
	must(t, err)
	d := digest.FromString(text)
	must(t, blobs.Put(t.Context(), d, int64(len(text)), strings.NewReader(text)))
	doc := `{"schema":1,"name":"web","resources":[{"id":"f","type":"file","path":"/srv/f","source":"` + d.String() + `"}]}`
	must(t, store.Update(func(tx *state.Tx) error {
		for i, n := range nodes {
			if err := tx.PutNode(&state.Node{ID: fmt.Sprintf("%032x", i+1), Name: n, Key: n, State: state.Enrolled}); err != nil {
				return err
			}
		}
		_, err := tx.AddAddress("192.0.2.1:7443")
		if err != nil {
			return err
		}
		_, err = module.Declare(tx, start, module.Wish{Name: "web", Document: []byte(doc), Placement: []string{"every"}}, func(digest.Digest) bool { return true })
		return err
	}))
	return p
}

const text = "what the module names"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// backup is an open backup of a control plane that does not run.
func (p plane) backup(t *testing.T, change ...func(*backup.Manifest)) []byte {
	t.Helper()
	m := &backup.Manifest{Made: start, By: "1.0.0", Mesh: p.mesh.ID, Pin: p.pin, Addresses: []string{"192.0.2.1:7443"}, Modules: []string{"web"}}
	must(t, state.Look(p.ControllerStore(), func(tx *state.Tx) error {
		now, err := tx.Mesh()
		m.Epoch = now.Epoch
		nodes, _ := tx.Nodes()
		for _, n := range nodes {
			m.Nodes = append(m.Nodes, backup.Node{ID: n.ID, Name: n.Name, State: string(n.State)})
		}
		return err
	}))
	paths := map[string]string{"state.db": p.ControllerStore(), "mesh.json": filepath.Join(p.ControllerState(), "mesh.json")}
	for _, name := range []string{"state.db", "mesh.json", "trust.json"} {
		path := filepath.Join(p.ControllerState(), name)
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(t, err)
		sum := sha256.Sum256(b)
		paths[name] = path
		m.Files = append(m.Files, backup.File{Name: name, Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:])})
	}
	d := digest.FromString(text)
	f := backup.Blob(d.Encoded(), int64(len(text)))
	paths[f.Name] = filepath.Join(p.ControllerContent(), "blobs/sha256", d.Encoded())
	m.Files = append(m.Files, f)
	for _, c := range change {
		c(m)
	}
	var out bytes.Buffer
	must(t, backup.Write(&out, m, func(f backup.File) (io.ReadCloser, error) { return os.Open(paths[f.Name]) }))
	return out.Bytes()
}

func (p plane) options(t *testing.T) restore.Options {
	t.Helper()
	there, err := restore.Look(p.Layout)
	must(t, err)
	return restore.Options{Layout: p.Layout, There: there, Now: start.Add(time.Hour)}
}

func (p plane) stage(t *testing.T, b []byte, tune ...func(*restore.Options)) (restore.Staged, error) {
	t.Helper()
	o := p.options(t)
	for _, f := range tune {
		f(&o)
	}
	return restore.Stage(t.Context(), bytes.NewReader(b), o)
}

func replacing(o *restore.Options) { o.Replace = true }

func (p plane) takeUp(t *testing.T) *restore.Order {
	t.Helper()
	o, release, err := restore.TakeUp(p.Layout)
	must(t, err)
	release()
	return o
}

// now is the mesh, its nodes and events, as the state says.
func (p plane) now(t *testing.T) (mesh *state.Mesh, nodes []string, restores int) {
	t.Helper()
	must(t, state.Look(p.ControllerStore(), func(tx *state.Tx) (err error) {
		if mesh, err = tx.Mesh(); err != nil {
			return err
		}
		ns, err := tx.Nodes()
		for _, n := range ns {
			nodes = append(nodes, n.Name)
		}
		events, _ := tx.Events(1000)
		for _, e := range events {
			if e.Kind == "mesh.restored" {
				restores++
			}
		}
		return err
	}))
	return mesh, nodes, restores
}

// tree is every file below a directory with what it holds, but for what content
// stores keep for themselves.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out[rel] = string(b)
		return err
	}))
	return out
}

func same(t *testing.T, what string, a, b map[string]string) {
	t.Helper()
	for name, text := range a {
		if now, ok := b[name]; !ok || now != text {
			t.Errorf("%s: %q is not as it was (there: %v)", what, name, ok)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			t.Errorf("%s: %q is new", what, name)
		}
	}
}

func TestD01AFreshMachineIsTheControlPlaneAgain(t *testing.T) {
	old, fresh := newPlane(t, "a", "b"), newPlane(t)
	was := tree(t, fresh.ControllerState())
	s, err := fresh.stage(t, old.backup(t), func(o *restore.Options) { o.Addresses = []string{"198.51.100.7:7443"} })
	must(t, err)
	if s.Order.Epoch != 2 || len(s.Lacking) != 0 || len(s.Lost) != 0 {
		t.Errorf("%+v", s)
	}
	if o := fresh.takeUp(t); o == nil || o.Epoch != 2 || o.Mesh != old.mesh.ID {
		t.Fatalf("%+v", o)
	}
	mesh, nodes, restores := fresh.now(t)
	if mesh.ID != old.mesh.ID || mesh.Epoch != 2 || !bytes.Equal(mesh.RootKey, old.mesh.RootKey) || strings.Join(nodes, " ") != "a b" || restores != 1 ||
		mesh.Restored == nil || !mesh.Restored.Backup.Equal(start) || mesh.Restored.Epoch != 1 {
		t.Errorf("%+v, %q, %d events", mesh, nodes, restores)
	}
	must(t, state.Look(fresh.ControllerStore(), func(tx *state.Tx) error {
		if a := tx.Addresses(); !slices.Equal(a, []string{"198.51.100.7:7443"}) {
			t.Errorf("addresses %v", a)
		}
		return nil
	}))
	blobs, err := content.Open(fresh.ControllerContent())
	must(t, err)
	if b, err := blobs.Read(digest.FromString(text), 100); err != nil || string(b) != text {
		t.Errorf("%q, %v", b, err)
	}
	// What was there is all there, aside.
	same(t, "set aside", was, tree(t, filepath.Join(fresh.ControllerState(), s.Order.Former)))
	if fresh.takeUp(t) != nil {
		t.Error("it is taken up twice")
	}
}

func TestWhatIsInOrderIsReplacedOnPurposeOnly(t *testing.T) {
	p, other := newPlane(t, "a", "b"), newPlane(t, "x")
	b := p.backup(t)
	// One more since.
	store, err := state.Open(p.ControllerStore())
	must(t, err)
	must(t, store.Update(func(tx *state.Tx) error {
		return tx.PutNode(&state.Node{ID: strings.Repeat("f", 32), Name: "late", Key: "late", State: state.Enrolled})
	}))
	must(t, store.Close())
	for what, c := range map[string]struct {
		p     plane
		words []string
	}{
		"the same mesh": {p, []string{"already", `"late"`, "--replace"}},
		"another's":     {other, []string{"which has 1 node", `"x"`, "--replace"}},
	} {
		was := tree(t, c.p.ControllerState())
		_, err := c.p.stage(t, b)
		for _, w := range c.words {
			if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error()+fault.RemedyOf(err), w) {
				t.Errorf("%s: %v; %s, want %q", what, err, fault.RemedyOf(err), w)
			}
		}
		same(t, what, was, tree(t, c.p.ControllerState()))
	}
	s, err := p.stage(t, b, replacing)
	must(t, err)
	if len(s.Lost) != 1 || s.Lost[0].Name != "late" {
		t.Errorf("lost: %+v", s.Lost)
	}
	// A second one before the first is taken up.
	if _, err := p.stage(t, b, replacing); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "waits to be taken up") {
		t.Errorf("%v", err)
	}
	p.takeUp(t)
	// The same backup once more: the epoch is higher all the same.
	_, err = p.stage(t, b, replacing)
	must(t, err)
	p.takeUp(t)
	if mesh, nodes, _ := p.now(t); mesh.Epoch != 3 || strings.Join(nodes, " ") != "a b" {
		t.Errorf("epoch %d, %q", mesh.Epoch, nodes)
	}
}

func TestAStateThatIsLostOrDamagedIsRestoredWithoutAWord(t *testing.T) {
	for what, spoil := range map[string]func(p plane) error{
		"lost":  func(p plane) error { return os.Remove(p.ControllerStore()) },
		"empty": func(p plane) error { return os.Truncate(p.ControllerStore(), 0) },
		"cut":   func(p plane) error { return os.Truncate(p.ControllerStore(), 4096) },
		"garbage": func(p plane) error {
			return os.WriteFile(p.ControllerStore(), bytes.Repeat([]byte("garbage "), 5000), 0o600)
		},
	} {
		p, other := newPlane(t, "a"), newPlane(t, "x")
		b, others := p.backup(t), other.backup(t)
		must(t, spoil(p))
		if _, err := p.stage(t, others); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "whose state cannot be used") {
			t.Errorf("%s: a backup of another mesh: %v", what, err)
		}
		_, err := p.stage(t, b)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		p.takeUp(t)
		if mesh, nodes, _ := p.now(t); mesh.Epoch != 2 || len(nodes) != 1 {
			t.Errorf("%s: epoch %d, %q", what, mesh.Epoch, nodes)
		}
	}
}

func TestWhatIsNotWholeTouchesNothing(t *testing.T) {
	old, fresh := newPlane(t, "a"), newPlane(t)
	good := old.backup(t)
	was := tree(t, fresh.ControllerState())
	for what, b := range map[string][]byte{
		"cut":                 good[:len(good)-2000],
		"flipped":             flip(good, len(good)/2),
		"another mesh's name": old.backup(t, func(m *backup.Manifest) { m.Mesh = strings.Repeat("0", 32) }),
		"another epoch":       old.backup(t, func(m *backup.Manifest) { m.Epoch = 7 }),
		"another root":        old.backup(t, func(m *backup.Manifest) { m.Pin = strings.Repeat("0", 64) }),
	} {
		for _, check := range []bool{true, false} {
			_, err := fresh.stage(t, b, func(o *restore.Options) { o.Check = check })
			if fault.KindOf(err) != fault.Refused && !(check && strings.HasPrefix(what, "another")) {
				t.Errorf("%s (check %v): %v", what, check, err)
			}
			same(t, what, was, tree(t, fresh.ControllerState()))
		}
	}
	if fresh.takeUp(t) != nil {
		t.Error("something is taken up")
	}
	s, err := fresh.stage(t, good, func(o *restore.Options) { o.Check = true })
	if err != nil || s.Mesh != old.mesh.ID || s.Order != nil {
		t.Errorf("%+v, %v", s, err)
	}
	same(t, "checked", was, tree(t, fresh.ControllerState()))
}

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}

func TestContentThatWasLeftOutIsNamedUnlessItIsHere(t *testing.T) {
	old, fresh := newPlane(t, "a"), newPlane(t)
	without := func(m *backup.Manifest) {
		m.WithoutContent, m.Files = true, m.Files[:len(m.Files)-1]
	}
	// The blob is on the fresh machine, too.
	s, err := fresh.stage(t, old.backup(t, without))
	if err != nil || len(s.Lacking) != 0 {
		t.Errorf("here: %v, %v", s.Lacking, err)
	}
	fresh.takeUp(t)
	bare := newPlane(t)
	must(t, os.RemoveAll(bare.ControllerContent()))
	s, err = bare.stage(t, old.backup(t, without))
	if err != nil || strings.Join(s.Lacking, " ") != "web" {
		t.Errorf("nowhere: %v, %v", s.Lacking, err)
	}
}

func TestARestoreForgetsNothingOfReleases(t *testing.T) {
	old, fresh := newPlane(t, "a"), newPlane(t)
	write := func(p plane, counter int) {
		must(t, os.WriteFile(filepath.Join(p.ControllerState(), "trust.json"), fmt.Appendf(nil, `{"counters":{"web":%d}}`, counter), 0o600))
	}
	for _, c := range []struct{ was, is, want int }{{3, 7, 7}, {9, 7, 9}, {0, 7, 7}} {
		write(fresh, c.is)
		if c.was > 0 {
			write(old, c.was)
		} else {
			must(t, os.Remove(filepath.Join(old.ControllerState(), "trust.json")))
		}
		_, err := fresh.stage(t, old.backup(t), replacing)
		must(t, err)
		fresh.takeUp(t)
		if b, _ := os.ReadFile(filepath.Join(fresh.ControllerState(), "trust.json")); !strings.Contains(string(b), fmt.Sprintf(`"web":%d`, c.want)) {
			t.Errorf("%+v: %s", c, b)
		}
	}
}

func TestAControlPlaneThatRunsIsNotTakenFromUnderItself(t *testing.T) {
	old, fresh := newPlane(t, "a"), newPlane(t)
	_, err := fresh.stage(t, old.backup(t))
	must(t, err)
	store, err := state.Open(fresh.ControllerStore())
	must(t, err)
	if _, _, err := restore.TakeUp(fresh.Layout); fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "has the state open") {
		t.Errorf("%v", err)
	}
	must(t, store.Close())
	if o := fresh.takeUp(t); o == nil {
		t.Error("it is not taken up afterwards")
	}
}
