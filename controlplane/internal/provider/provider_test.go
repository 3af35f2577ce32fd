package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// registry is a provider that remembers who has what, and may be down.
type registry struct {
	name string
	mu   sync.Mutex
	has  map[string]string
	// fails says what goes wrong for a node; did is what was asked of it.
	fails func(node string) error
	did   []string
}

func newRegistry(name string) *registry {
	return &registry{name: name, has: map[string]string{}, fails: func(string) error { return nil }}
}

func (r *registry) Name() string { return r.name }

func (r *registry) do(what, node string, f func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did = append(r.did, what+" "+node)
	if err := r.fails(node); err != nil {
		return err
	}
	f()
	return nil
}

func (r *registry) Grant(_ context.Context, node string) (string, error) {
	return "ref-" + node, r.do("grant", node, func() { r.has[node] = "ref-" + node })
}

func (r *registry) Revoke(_ context.Context, g state.Grant) error {
	return r.do("revoke", g.Node, func() { delete(r.has, g.Node) })
}

func (r *registry) set(f func()) { r.mu.Lock(); defer r.mu.Unlock(); f() }

type bench struct {
	t     *testing.T
	path  string
	store *state.Store
	*Book
	stop func()
}

func newBench(t *testing.T, ps ...Provider) *bench {
	t.Helper()
	b := &bench{t: t, path: filepath.Join(t.TempDir(), "state.db")}
	b.begin(ps...)
	t.Cleanup(func() { b.end() })
	return b
}

// begin is the start of a process.
func (b *bench) begin(ps ...Provider) {
	b.t.Helper()
	var err error
	if b.store, err = state.Open(b.path); err != nil {
		b.t.Fatal(err)
	}
	b.Book = NewBook(b.store, clock.At(start), slog.New(slog.DiscardHandler))
	b.shortest, b.longest, b.call = time.Millisecond, 20*time.Millisecond, 50*time.Millisecond
	for _, p := range ps {
		b.Register(p)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { b.Run(ctx); close(ended) }()
	b.stop = sync.OnceFunc(func() { cancel(); <-ended })
}

// end is that of a process.
func (b *bench) end() {
	b.stop()
	if b.store != nil {
		b.store.Close()
		b.store = nil
	}
}

func (b *bench) update(f func(*state.Tx) error) {
	b.t.Helper()
	if err := b.store.Update(f); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) admit(nodes ...string) {
	b.t.Helper()
	b.update(func(tx *state.Tx) error {
		for _, n := range nodes {
			if _, err := b.Admit(tx, n, start); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) revoke(nodes ...string) {
	b.t.Helper()
	b.update(func(tx *state.Tx) error {
		for _, n := range nodes {
			if err := b.Book.Revoke(tx, n, start); err != nil {
				return err
			}
		}
		return nil
	})
}

// list is what is written, "provider/node state ref error".
func (b *bench) list() (out []string) {
	b.t.Helper()
	err := b.store.View(func(tx *state.Tx) error {
		gs, err := tx.Grants()
		for _, g := range gs {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s/%s %s %s %s", g.Provider, g.Node, g.State, g.Ref, g.Error)))
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// await waits until the list is that.
func (b *bench) await(want ...string) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		got := b.list()
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("written is\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
		<-time.After(time.Millisecond)
	}
}

func TestGrantsAreMadeAndTakenAway(t *testing.T) {
	r := newRegistry("registry")
	b := newBench(t, r, contentOnly{})
	b.admit("a", "b")
	b.await("content/a granted", "content/b granted", "registry/a granted ref-a", "registry/b granted ref-b")
	b.admit("a") // once more is nothing more
	b.revoke("a")
	b.await("content/b granted", "registry/b granted ref-b")
	r.set(func() {
		if len(r.has) != 1 || r.has["b"] == "" || slices.Contains(r.did, "revoke b") || !slices.Contains(r.did, "revoke a") {
			t.Errorf("the registry has %v and was asked %v", r.has, r.did)
		}
	})
}

// contentOnly is the content endpoint where nobody downloads.
type contentOnly struct{}

func (contentOnly) Name() string                                  { return Content }
func (contentOnly) Grant(context.Context, string) (string, error) { return "", nil }
func (contentOnly) Revoke(context.Context, state.Grant) error     { return nil }

func TestAGrantOfAProviderThatIsDownIsNeverForgotten(t *testing.T) {
	r := newRegistry("registry")
	b := newBench(t, r, contentOnly{})
	b.admit("a", "b")
	b.await("content/a granted", "content/b granted", "registry/a granted ref-a", "registry/b granted ref-b")
	r.set(func() { r.fails = func(string) error { return errors.New("connection refused") } })
	b.revoke("a")
	b.await("content/b granted", "registry/a revoking ref-a connection refused", "registry/b granted ref-b")
	for range 3 { // over restarts
		b.end()
		b.begin(r, contentOnly{})
		b.await("content/b granted", "registry/a revoking ref-a connection refused", "registry/b granted ref-b")
	}
	r.set(func() { r.fails = func(string) error { return nil } })
	b.await("content/b granted", "registry/b granted ref-b")
}

// Whatever a kill falls between, what is asked again finds it.
func TestAKillBetweenDoingAndWritingIsDoneAgain(t *testing.T) {
	r := newRegistry("registry")
	b := newBench(t, contentOnly{}) // nobody asks the registry
	b.end()
	for name, x := range map[string]struct {
		written state.Grant
		has     map[string]string
		want    []string
		after   int
	}{
		"granting, not done": {state.Grant{State: state.Granting}, nil, []string{"registry/a granted ref-a"}, 1},
		"granting, done":     {state.Grant{State: state.Granting}, map[string]string{"a": "ref-a"}, []string{"registry/a granted ref-a"}, 1},
		"revoking, not done": {state.Grant{State: state.Revoking, Ref: "ref-a"}, map[string]string{"a": "ref-a"}, nil, 0},
		"revoking, done":     {state.Grant{State: state.Revoking, Ref: "ref-a"}, nil, nil, 0},
		"revoking, of which the answer was never heard": {state.Grant{State: state.Revoking}, map[string]string{"a": "ref-a"}, nil, 0},
	} {
		b.path = filepath.Join(t.TempDir(), "state.db")
		s, err := state.Open(b.path)
		if err != nil {
			t.Fatal(err)
		}
		x.written.Node, x.written.Provider = "a", "registry"
		if err := s.Update(func(tx *state.Tx) error { return tx.PutGrant(&x.written) }); err != nil {
			t.Fatal(err)
		}
		s.Close()
		r.set(func() {
			r.has = map[string]string{}
			for k, v := range x.has {
				r.has[k] = v
			}
		})
		b.begin(r)
		b.await(x.want...)
		b.end()
		r.set(func() {
			if len(r.has) != x.after {
				t.Errorf("%s: the registry has %v", name, r.has)
			}
		})
	}
}

func TestWhatCannotBeDoneHoldsUpNothing(t *testing.T) {
	r, other := newRegistry("registry"), newRegistry("broker")
	hung := hangs{newRegistry("aaa")}
	b := newBench(t, hung, r, other)
	r.set(func() {
		r.fails = func(n string) error {
			if strings.HasPrefix(n, "bad") {
				return errors.New("no")
			}
			return nil
		}
	})
	// Five that fail come before the good one, and a provider that never answers.
	b.admit("bad1", "bad2", "bad3", "bad4", "bad5", "good")
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(time.Millisecond) {
		got := b.list()
		if slices.Contains(got, "registry/good granted ref-good") && slices.Contains(got, "broker/bad1 granted ref-bad1") &&
			slices.Contains(got, "aaa/bad1 granting  context deadline exceeded") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s", strings.Join(got, "\n"))
		}
	}
}

// hangs answers at its deadline.
type hangs struct{ *registry }

func (hangs) Grant(ctx context.Context, _ string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func TestARevocationThatComesWhileItIsGrantedWins(t *testing.T) {
	r := newRegistry("registry")
	b := newBench(t, contentOnly{})
	b.end()
	var b2 *bench
	r.fails = func(node string) error {
		if len(r.did) == 1 { // in the middle of the grant
			b2.revoke(node)
		}
		return nil
	}
	b2 = newBench(t, r, contentOnly{})
	b2.admit("a")
	b2.await()
	r.set(func() {
		if len(r.has) != 0 || !slices.Equal(r.did, []string{"grant a", "revoke a"}) {
			t.Errorf("the registry has %v, and was asked %v", r.has, r.did)
		}
	})
}

// A state from before there were grants, and one from before there was the registry.
func TestMembersGetTheGrantsTheyLack(t *testing.T) {
	r := newRegistry("registry")
	b := newBench(t, r, contentOnly{})
	b.update(func(tx *state.Tx) error {
		for i, s := range []state.NodeState{state.Enrolled, state.Admitted, state.Pending, state.Refused, state.Revoked} {
			if err := tx.PutNode(&state.Node{ID: fmt.Sprint(i), Key: fmt.Sprint("k", i), State: s}); err != nil {
				return err
			}
		}
		return tx.PutGrant(&state.Grant{Node: "1", Provider: Content, State: state.Granted})
	})
	if err := b.Complete(); err != nil {
		t.Fatal(err)
	}
	b.await("content/0 granted", "content/1 granted", "registry/0 granted ref-0", "registry/1 granted ref-1")
	if err := b.Complete(); err != nil {
		t.Fatal(err)
	}
	b.await("content/0 granted", "content/1 granted", "registry/0 granted ref-0", "registry/1 granted ref-1")
}

func TestATransactionThatIsTakenBackWakesNobody(t *testing.T) {
	r := newRegistry("registry")
	b := newBench(t, r)
	err := b.store.Update(func(tx *state.Tx) error {
		if _, err := b.Admit(tx, "a", start); err != nil {
			return err
		}
		return errors.New("no")
	})
	if err == nil || len(b.list()) != 0 {
		t.Errorf("%v; %v", err, b.list())
	}
	b.admit("b")
	b.await("content/b granted", "registry/b granted ref-b")
	r.set(func() {
		if !slices.Equal(r.did, []string{"grant b"}) {
			t.Errorf("asked %v", r.did)
		}
	})
}
