package admin_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin/bundletest"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// publisher is one whom the desk trusts.
func publisher(t *testing.T, desk *admin.Desk) *bundletest.Publisher {
	t.Helper()
	p, err := bundletest.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.TrustedBy(desk.Layout); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(desk.Layout.ControllerState(), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func built(t *testing.T, spec bundle.Spec) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.tar")
	if err := bundletest.Build(t.Context(), path, spec); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// recorded is what was pushed, "NAME VERSION ARCHITECTURE" each.
func recorded(t *testing.T, desk *admin.Desk) []string {
	t.Helper()
	var out []string
	err := desk.Office.Store.View(func(tx *state.Tx) error {
		ps, err := tx.AllPushed()
		for _, p := range ps {
			out = append(out, p.Name+" "+p.Version+" "+p.Architecture)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func holds(desk *admin.Desk, text string) bool {
	return desk.Content.Has(digest.FromString(text), int64(len(text)))
}

func TestAPushIsRecordedOnceAndNeverOlder(t *testing.T) {
	client, desk := open(t)
	p := publisher(t, desk)
	otherArch := p.Spec("web", 3, "for arm")
	otherArch.Architecture = "aarch64"
	for i, c := range []struct {
		spec     bundle.Spec
		question admin.Push
		changed  bool
		refusal  string
		want     string
	}{
		{spec: p.Spec("web", 5, "one"), changed: true, want: "web 1.0.5 x86_64"},
		{spec: p.Spec("web", 5, "one"), want: "web 1.0.5 x86_64"},
		{spec: p.Spec("web", 4, "zero"), refusal: `older than what was pushed: bundle "web" for x86_64 has counter 4, 5 was pushed`, want: "web 1.0.5 x86_64"},
		{spec: otherArch, changed: true, want: "web 1.0.3 aarch64, web 1.0.5 x86_64"},
		{spec: p.Spec("web", 6, "two"), changed: true, want: "web 1.0.3 aarch64, web 1.0.6 x86_64"},
		{spec: p.Spec("web", 4, "zero"), question: admin.Push{AllowRollback: true}, changed: true, want: "web 1.0.3 aarch64, web 1.0.4 x86_64"},
		{spec: p.Spec("db", 1, "db"), changed: true, want: "db 1.0.1 x86_64, web 1.0.3 aarch64, web 1.0.4 x86_64"},
		{spec: p.Spec("site.v2", 1, "x"), refusal: `the name of bundle "site.v2" can be no module's`, want: "db 1.0.1 x86_64, web 1.0.3 aarch64, web 1.0.4 x86_64"},
	} {
		got, err := admin.SendBundle(t.Context(), client, c.question, bytes.NewReader(built(t, c.spec)))
		if c.refusal == "" && (err != nil || got.Changed != c.changed) || c.refusal != "" && (fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), c.refusal)) {
			t.Errorf("%d: changed %v, %v", i, got.Changed, err)
		}
		if now := strings.Join(recorded(t, desk), ", "); now != c.want {
			t.Errorf("%d: recorded %s, want %s", i, now, c.want)
		}
	}
	events, err := admin.Events.Ask(t.Context(), client, admin.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range events {
		if e.Kind == "module.pushed" {
			said = append(said, e.Sentence)
		}
	}
	if len(said) != 5 || !strings.HasPrefix(said[0], `bundle "web" 1.0.5 (counter 5, x86_64) is pushed, signed by `) {
		t.Errorf("%q", said)
	}
	// No node has anything of it.
	nodes, err := admin.Nodes.Ask(t.Context(), client, admin.None{})
	for _, n := range nodes {
		if n.Wanted != 0 {
			t.Errorf("%+v %v", n, err)
		}
	}
}

func TestPushingTheSameAgainWritesNothing(t *testing.T) {
	client, desk := open(t)
	b := built(t, publisher(t, desk).Spec("web", 1, "one", strings.Repeat("two", 1<<20)))
	var before string
	for i := range 3 {
		if _, err := admin.SendBundle(t.Context(), client, admin.Push{}, bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		now := files(t, desk.Layout.Root)
		if i > 0 && now != before {
			t.Errorf("was:\n%s\nis:\n%s", before, now)
		}
		before = now
	}
}

func TestWhatIsNotSignedByTheTrustedWritesNothing(t *testing.T) {
	client, desk := open(t)
	publisher(t, desk)
	stranger, err := bundletest.New()
	if err != nil {
		t.Fatal(err)
	}
	// Much more than the sockets hold, of which only the beginning is read.
	b := built(t, stranger.Spec("web", 1, strings.Repeat("x", 24<<20)))
	before := files(t, desk.Layout.Root)
	for range 5 {
		_, err = admin.SendBundle(t.Context(), client, admin.Push{}, bytes.NewReader(b))
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "unknown key") {
			t.Errorf("%v", err)
		}
	}
	// Nor does a pipe that goes on for ever keep the answer back.
	r, w := io.Pipe()
	go func() {
		_, _ = w.Write(b) // it ends with the pipe
	}()
	_, err = admin.SendBundle(t.Context(), client, admin.Push{}, r)
	r.Close()
	if fault.KindOf(err) != fault.Refused {
		t.Errorf("%v", err)
	}
	if now := files(t, desk.Layout.Root); now != before || recorded(t, desk) != nil {
		t.Errorf("was:\n%s\nis:\n%s", before, now)
	}
	// Told to trust him for this once, it does.
	elsewhere := desk.Layout
	elsewhere.Root = t.TempDir()
	if err := stranger.TrustedBy(elsewhere); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.SendBundle(t.Context(), client, admin.Push{Trust: elsewhere.AdminTrust()}, bytes.NewReader(b)); err != nil {
		t.Error(err)
	}
	if _, err := admin.SendBundle(t.Context(), client, admin.Push{}, bytes.NewReader(b)); fault.KindOf(err) != fault.Refused {
		t.Errorf("and went on to: %v", err)
	}
}

func TestWhatIsNoModuleIsNotRecorded(t *testing.T) {
	client, desk := open(t)
	p := publisher(t, desk)
	two := p.Spec("web", 1, "one")
	two.Declarations = append(two.Declarations, bundle.Declaration{Title: "more.json", Bytes: []byte(`{"schema":1,"name":"y","resources":[]}`)})
	bad := p.Spec("web", 1, "one")
	bad.Declarations[0].Bytes = []byte(`{"schema":1,"name":"x","colour":"red","resources":[]}`)
	missing := p.Spec("web", 1, "one")
	missing.Declarations[0].Bytes = fmt.Appendf(nil, `{"schema":1,"name":"x","resources":[{"id":"a","type":"file","path":"/a","source":%q}]}`, digest.FromString("elsewhere"))
	cut := built(t, p.Spec("web", 1, strings.Repeat("x", 1<<20)))
	for why, b := range map[string][]byte{
		"carries 2 declarations": built(t, two), "colour": built(t, bad), "which it does not bring": built(t, missing), "truncated": cut[:1<<20],
	} {
		_, err := admin.SendBundle(t.Context(), client, admin.Push{}, bytes.NewReader(b))
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), why) || recorded(t, desk) != nil {
			t.Errorf("%s: %v", why, err)
		}
	}
	broken := errors.New("the disk is broken")
	_, err := admin.SendBundle(t.Context(), client, admin.Push{}, io.MultiReader(bytes.NewReader(cut[:1<<20]), failing{broken}))
	if !errors.Is(err, broken) || recorded(t, desk) != nil {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestPushesAtOnceEndWithTheNewest: whatever came first, and with all its content.
func TestPushesAtOnceEndWithTheNewest(t *testing.T) {
	client, desk := open(t)
	p := publisher(t, desk)
	var running sync.WaitGroup
	for counter := uint64(1); counter <= 8; counter++ {
		b := built(t, p.Spec("web", counter, "shared", fmt.Sprint("own ", counter)))
		running.Go(func() {
			_, err := admin.SendBundle(t.Context(), client, admin.Push{}, bytes.NewReader(b))
			if err != nil && !strings.Contains(err.Error(), "older than what was pushed") {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if got := recorded(t, desk); len(got) != 1 || got[0] != "web 1.0.8 x86_64" || !holds(desk, "own 8") || !holds(desk, "shared") {
		t.Errorf("%q", got)
	}
}

// files is every file below dir but sockets, with its inode, size and times.
func files(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		fi, err := e.Info()
		if err == nil {
			st := fi.Sys().(*syscall.Stat_t)
			fmt.Fprintf(&b, "%s %d %d %v %v\n", path, st.Ino, st.Size, st.Mtim, st.Ctim)
		}
		return err
	})
	if err != nil || b.Len() == 0 {
		t.Fatal(err)
	}
	return b.String()
}
