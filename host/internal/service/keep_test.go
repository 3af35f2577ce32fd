package service

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// A publisher makes bundles that a machine trusts.
type publisher struct {
	t   *testing.T
	key *ecdsa.PrivateKey
}

func newPublisher(t *testing.T, cfg Config) *publisher {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := cfg.Layout.AdminTrust()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "k.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
	return &publisher{t, key}
}

// bundle is one that declares a file for each content, at /srv/NAME.
func (p *publisher) bundle(counter uint64, contents map[string]string) []byte {
	p.t.Helper()
	spec := bundle.Spec{Name: "site", Version: fmt.Sprint("1.0.", counter), Counter: counter, Architecture: bundle.Architecture(runtime.GOARCH)}
	var resources []string
	d := bundle.Declaration{Title: "declaration.json"}
	for name, text := range contents {
		sum := digest.FromString(text)
		resources = append(resources, fmt.Sprintf(`{"id":%q,"type":"file","path":"/srv/%s","source":%q,"take_over":true}`, name, name, sum))
		d.Needs = append(d.Needs, sum)
		spec.Payload = append(spec.Payload, bundle.Blob{Digest: sum, Size: int64(len(text)), Title: name,
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }})
	}
	d.Bytes = fmt.Appendf(nil, `{"schema":1,"name":"site","generation":%d,"resources":[%s]}`, counter, strings.Join(resources, ","))
	spec.Declarations = []bundle.Declaration{d}
	spec.Signers = append(spec.Signers, p.key)
	path := filepath.Join(p.t.TempDir(), "b.tar")
	if _, err := bundle.Build(p.t.Context(), path, spec); err != nil {
		p.t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// bootstrap does what the command does.
func bootstrap(ctx context.Context, s *Service, file []byte) error {
	store, err := content.Open(s.Layout.Content())
	if err != nil {
		return err
	}
	lease, err := store.Lease()
	if err != nil {
		return err
	}
	defer lease.Release()
	policy, err := Policy(s.Layout, Override{})
	if err != nil {
		return err
	}
	info, err := bundle.Read(ctx, bytes.NewReader(file), bundle.Options{Policy: policy, Store: store})
	if err != nil {
		return err
	}
	_, err = s.Bundle(ctx, BundleRequest{Digest: info.Digest})
	return err
}

// collect collects as soon as nobody holds a lease, the service's own collector
// not either.
func collect(t *testing.T, s *Service) content.Report {
	t.Helper()
	for {
		r, err := s.content.Collect(t.Context(), s.keep)
		if errors.Is(err, content.ErrInUse) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// picture is every file below dir with its inode, size and times of change.
func picture(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err == nil && fi.Mode().IsRegular() {
			st := fi.Sys().(*syscall.Stat_t)
			fmt.Fprintf(&b, "%s %d %d %v %v\n", path, st.Ino, st.Size, st.Mtim, st.Ctim)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func holds(s *Service, text string) bool { return s.content.Has(digest.FromString(text), -1) }

func TestWhatNoDeclarationNamesAnyMoreGoesAndWhatTwoShareStays(t *testing.T) {
	cfg := machine(t)
	p := newPublisher(t, cfg)
	s := working(t, cfg)
	old, shared, fresh := strings.Repeat("old", 1<<20), strings.Repeat("shared", 1<<18), "fresh"
	first := p.bundle(1, map[string]string{"a": old, "b": shared})
	second := p.bundle(2, map[string]string{"b": shared, "c": fresh})
	if err := bootstrap(t.Context(), s, first); err != nil {
		t.Fatal(err)
	}
	collect(t, s)
	before, _ := s.Status(t.Context())
	if !holds(s, old) || before.Content.Bytes < int64(len(old)+len(shared)) {
		t.Fatalf("%+v", before.Content)
	}
	if err := bootstrap(t.Context(), s, second); err != nil {
		t.Fatal(err)
	}
	collect(t, s)
	if holds(s, old) || !holds(s, shared) || !holds(s, fresh) {
		t.Errorf("old %v, shared %v, fresh %v", holds(s, old), holds(s, shared), holds(s, fresh))
	}
	after, err := s.Status(t.Context())
	if freed := before.Content.Bytes - after.Content.Bytes; err != nil || freed < int64(len(old))-8192 || after.Content.Bytes > int64(len(shared))+16384 {
		t.Errorf("%d bytes are freed, %d stay (%v)", freed, after.Content.Bytes, err)
	}

	// What is in force is there to the last blob: again writes nothing.
	was := picture(t, cfg.Layout.State())
	if err := bootstrap(t.Context(), s, second); err != nil {
		t.Fatal(err)
	}
	if r := collect(t, s); len(r.Removed)+len(r.Unmarked)+r.Parts != 0 {
		t.Errorf("%+v", r)
	}
	if now := picture(t, cfg.Layout.State()); now != was {
		t.Errorf("was:\n%s\nis:\n%s", was, now)
	}

	// A declaration without a bundle: the bundle goes, what it declares stays.
	if _, err := s.Apply(t.Context(), fmt.Appendf(nil, `{"schema":1,"name":"other","resources":[{"id":"c","type":"file","path":"/srv/c","source":%q}]}`, digest.FromString(fresh))); err != nil {
		t.Fatal(err)
	}
	if r := collect(t, s); r.Blobs != 1 || !holds(s, fresh) || len(r.Unmarked) > 1 {
		t.Errorf("%+v", r)
	}
	if marks, err := s.content.Marks(); err != nil || len(marks) != 0 {
		t.Errorf("%v %v", marks, err)
	}
}

func TestWhatWasThereBeforeIsKeptUntilItIsGivenBack(t *testing.T) {
	cfg := machine(t)
	p := newPublisher(t, cfg)
	s := working(t, cfg)
	page := cfg.Layout.Path("/srv/a")
	if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	for counter := uint64(1); counter <= 3; counter++ {
		if err := bootstrap(t.Context(), s, p.bundle(counter, map[string]string{"a": fmt.Sprint("ours ", counter)})); err != nil {
			t.Fatal(err)
		}
		collect(t, s)
		if !holds(s, "theirs") || holds(s, fmt.Sprint("ours ", counter-1)) {
			t.Errorf("%d: theirs is there: %v", counter, holds(s, "theirs"))
		}
	}
	if err := bootstrap(t.Context(), s, p.bundle(4, map[string]string{"b": "else"})); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(page); err != nil || string(b) != "theirs" {
		t.Errorf("%q %v", b, err)
	}
	if collect(t, s); holds(s, "theirs") || !holds(s, "else") {
		t.Error("what was given back is kept, or what is declared is not")
	}
}

func TestACommandCollectsBeforeItEndsAndAPassThatChangesNothingDoesNot(t *testing.T) {
	cfg := machine(t)
	p := newPublisher(t, cfg)
	run := func(f func(s *Service) error) {
		t.Helper()
		s, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.start(beat{})
		if err := f(s); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	in := func(text string) bool {
		store, err := content.Open(cfg.Layout.Content())
		return err == nil && store.Has(digest.FromString(text), -1)
	}
	litter := func() {
		t.Helper()
		store, err := content.Open(cfg.Layout.Content())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := store.Add(t.Context(), strings.NewReader("litter"), 10); err != nil {
			t.Fatal(err)
		}
	}
	run(func(s *Service) error { return bootstrap(t.Context(), s, p.bundle(1, map[string]string{"a": "one"})) })
	litter()
	run(func(s *Service) error { _, err := s.Pass(t.Context()); return err })
	run(func(s *Service) error { _, err := s.Status(t.Context()); return err })
	if !in("litter") {
		t.Error("a pass that changed nothing collected")
	}
	run(func(s *Service) error { return bootstrap(t.Context(), s, p.bundle(2, map[string]string{"a": "two"})) })
	if in("litter") || in("one") || !in("two") {
		t.Errorf("litter %v, one %v, two %v", in("litter"), in("one"), in("two"))
	}
}

// TestACollectionThatRacesBootstrapsTakesNothingFromThem: two bundles take each
// other's place, and each time somebody throws away what the other one brought.
func TestACollectionThatRacesBootstrapsTakesNothingFromThem(t *testing.T) {
	cfg := machine(t)
	p := newPublisher(t, cfg)
	s := working(t, cfg)
	// One counter: each is as new as the other.
	files := [][]byte{p.bundle(1, map[string]string{"a": "A", "s": "shared"}), p.bundle(1, map[string]string{"b": "B", "s": "shared"})}
	var running sync.WaitGroup
	var collected atomic.Int64
	for _, file := range files {
		running.Go(func() {
			for range 15 {
				err := bootstrap(t.Context(), s, file)
				if err != nil && !strings.Contains(err.Error(), "another declaration was accepted") {
					t.Error(err)
					return
				}
				for {
					r, err := s.content.Collect(t.Context(), s.keep)
					if !errors.Is(err, content.ErrInUse) {
						if err != nil {
							t.Error(err)
						}
						collected.Add(int64(len(r.Removed)))
						break
					}
				}
			}
		})
	}
	running.Wait()
	if collected.Load() == 0 {
		t.Error("nothing was collected meanwhile")
	}
	if r, err := s.Pass(t.Context()); err != nil || len(r.Resources) == 0 || !allGood(r.Resources) {
		t.Errorf("%+v %v", r, err)
	}
}

func TestNothingIsCollectedWhileItIsNotKnownWhatIsNeeded(t *testing.T) {
	cfg := machine(t)
	p := newPublisher(t, cfg)
	s := working(t, cfg)
	refusesTo := func(why string) {
		t.Helper()
		if r, err := s.content.Collect(t.Context(), s.keep); err == nil || !strings.Contains(err.Error(), why) || len(r.Removed) != 0 {
			t.Errorf("%+v %v", r, err)
		}
	}
	refusesTo("no declaration is in force")
	if err := bootstrap(t.Context(), s, p.bundle(1, map[string]string{"a": "one"})); err != nil {
		t.Fatal(err)
	}
	aside := s.Layout.HostStore() + ".damaged-1"
	if err := os.WriteFile(aside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refusesTo("set aside")
	if _, _, err := s.content.Add(t.Context(), strings.NewReader("litter"), 10); err != nil {
		t.Fatal(err)
	}
	s.collector.Due()
	s.collector.Once(t.Context())
	if st, err := s.Status(t.Context()); err != nil || !strings.Contains(strings.Join(st.Warnings, "\n"), "not thrown away") {
		t.Errorf("%q %v", st.Warnings, err)
	}
	if err := os.Remove(aside); err != nil {
		t.Fatal(err)
	}
	spec := []byte(`{"type":"unit","name":"x.service","enabled":true}`)
	if err := s.store.Commit(resource.Record{Key: "unit:x.service", ID: "x", Type: declaration.TypeUnit, Spec: spec, At: clock.System.Now()}); err != nil {
		t.Fatal(err)
	}
	known := references[declaration.TypeUnit]
	delete(references, declaration.TypeUnit) // as in a version before it
	refusesTo(`this version does not know the type "unit"`)
	references[declaration.TypeUnit] = known
	if err := s.store.Forget("unit:x.service"); err != nil {
		t.Fatal(err)
	}
	if collect(t, s); holds(s, "litter") || !holds(s, "one") {
		t.Error("litter is there, or what is declared is not")
	}
}

func TestOfEachKindItIsKnownWhatItKeeps(t *testing.T) {
	s := working(t, machine(t))
	for kind := range s.engine.Kinds {
		if references[kind] == nil {
			t.Errorf("%q: say in keep.go what of the content store its records need", kind)
		}
	}
}

func TestTheRunningProgramIsKept(t *testing.T) {
	cfg := machine(t)
	s := working(t, cfg)
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	d, _, err := s.content.Add(t.Context(), self, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if r := collect(t, s); r.Blobs != 1 || !s.content.Has(d, -1) {
		t.Errorf("%+v", r)
	}
}

func allGood(rs []link.ResourceReport) bool {
	for _, r := range rs {
		if !r.Outcome.Good() {
			return false
		}
	}
	return true
}
