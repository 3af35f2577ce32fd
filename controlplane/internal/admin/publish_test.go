package admin_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/address"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/repository/seedtest"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// releaser is a publisher of releases whom the machine trusts.
func releaser(t *testing.T, l layout.Layout) *seedtest.Publisher {
	t.Helper()
	p, err := seedtest.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.TrustedBy(l), os.MkdirAll(l.ControllerState(), 0o700)); err != nil {
		t.Fatal(err)
	}
	return p
}

func released(t *testing.T, p *seedtest.Publisher, architecture string, counter uint64) *seedtest.Release {
	t.Helper()
	r, err := p.Release(architecture, counter)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func bundled(t *testing.T, r *seedtest.Release) []byte {
	t.Helper()
	b, err := r.Built(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// serving makes the desk one that serves new machines on the port.
func serving(t *testing.T, desk *admin.Desk, listen string) {
	t.Helper()
	ls, served, err := address.Listen([]string{listen})
	if err != nil {
		t.Fatal(err)
	}
	ls[0].Close() // that it listens is not asked here
	desk.RepositoryServed = served
}

// served is "VERSION ARCHITECTURE FROM" of each release that new machines are served.
func served(desk *admin.Desk) string {
	var out []string
	releases, faults := desk.Repository.Serves()
	for _, r := range releases {
		out = append(out, fmt.Sprintf("%s %s %s", r.Version, r.Architecture, r.From))
	}
	for _, err := range faults {
		out = append(out, err.Error())
	}
	return strings.Join(out, ", ")
}

func TestAPushPublishesAndNeverAnOlder(t *testing.T) {
	client, desk := open(t)
	p := releaser(t, desk.Layout)
	serving(t, desk, "127.0.0.1:0")
	if err := released(t, p, "x86_64", 5).Lay(desk.Layout.ControllerSeed()); err != nil {
		t.Fatal(err)
	}
	otherName := released(t, p, "x86_64", 9)
	otherName.Name = "web"
	if err := otherName.Sign(); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		release  *seedtest.Release
		question admin.Push
		say      string // why it is not published
		want     string
	}{
		{release: released(t, p, "x86_64", 4), say: "they are served 1.0.5, which is newer (counter 5)", want: "1.0.5 x86_64 seed"},
		{release: released(t, p, "x86_64", 6), want: "1.0.6 x86_64 push"},
		{release: released(t, p, "aarch64", 3), want: "1.0.3 aarch64 push, 1.0.6 x86_64 push"},
		{release: released(t, p, "x86_64", 4), question: admin.Push{AllowRollback: true}, say: "they are served 1.0.6, which is newer (counter 6)", want: "1.0.3 aarch64 push, 1.0.6 x86_64 push"},
		{release: otherName, say: `they are served what bundle "nox-mesh" brought`, want: "1.0.3 aarch64 push, 1.0.6 x86_64 push"},
		{release: released(t, p, "x86_64", 7), question: admin.Push{Trust: desk.Layout.AdminTrust()}, say: "it was taken on trust that was given for this push alone", want: "1.0.3 aarch64 push, 1.0.6 x86_64 push"},
		{release: released(t, p, "x86_64", 8), want: "1.0.3 aarch64 push, 1.0.8 x86_64 push"},
	} {
		got, err := admin.SendBundle(t.Context(), client, c.question, bytes.NewReader(bundled(t, c.release)))
		if err != nil || got.Published != (c.say == "") || got.NotPublished != c.say {
			t.Errorf("%d: published %v, %q, %v", i, got.Published, got.NotPublished, err)
		}
		if now := served(desk); now != c.want {
			t.Errorf("%d: it serves %s, want %s", i, now, c.want)
		}
	}
	// What is served is needed, whatever becomes of the module; the one before is not.
	if _, err := admin.Undeclare.Ask(t.Context(), client, admin.ModuleRef{Name: "nox-mesh"}); err != nil {
		t.Fatal(err)
	}
	if _, err := desk.Content.Collect(t.Context(), kept(desk)); err != nil {
		t.Fatal(err)
	}
	for counter, there := range map[uint64]bool{6: false, 8: true} {
		for name, text := range released(t, p, "x86_64", counter).Files {
			if !strings.HasPrefix(name, "release.json") && desk.Content.Has(digest.FromString(text), -1) != there {
				t.Errorf("%s of %d is there: %v", name, counter, !there)
			}
		}
	}
	desk.Repository.Changed()
	if got := served(desk); got != "1.0.3 aarch64 push, 1.0.8 x86_64 push" {
		t.Errorf("after the collection it serves %s", got)
	}
	s, err := admin.GetStatus.Ask(t.Context(), client, admin.None{})
	if err != nil || len(s.Repository.Serves) != 2 || s.Repository.Listen != desk.RepositoryServed.String() {
		t.Errorf("status: %+v, %v", s.Repository, err)
	}

	// A newer seed, from the host, takes its place; and so does none by less.
	if err := released(t, p, "x86_64", 10).Lay(desk.Layout.ControllerSeed()); err != nil {
		t.Fatal(err)
	}
	if got := served(desk); got != "1.0.3 aarch64 push, 1.0.10 x86_64 seed" {
		t.Errorf("with a newer seed it serves %s", got)
	}
}

// TestAReleaseThatIsNotWholeIsNotPushed: what its list says must come with it.
func TestAReleaseThatIsNotWholeIsNotPushed(t *testing.T) {
	client, desk := open(t)
	p := releaser(t, desk.Layout)
	const db = "arch/x86_64/nox-mesh.db"
	for what, c := range map[string]struct {
		do  func(*seedtest.Release)
		say string
	}{
		"a file is not there":    {func(r *seedtest.Release) { delete(r.Files, db) }, "does not lay down the \"" + db},
		"a file is another":      {func(r *seedtest.Release) { r.Files[db] = "another" }, "does not lay down the \"" + db},
		"the list is another's":  {func(r *seedtest.Release) { r.Files["release.json"] = "{}" }, "bad signature"},
		"the list is of another": {func(r *seedtest.Release) { r.Counter++ }, "the list of what it brings for new machines is of \"nox-mesh\" 1.0.7 for x86_64, counter 7"},
	} {
		r := released(t, p, "x86_64", 7)
		c.do(r)
		_, err := admin.SendBundle(t.Context(), client, admin.Push{}, bytes.NewReader(bundled(t, r)))
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", what, err)
		}
		if got := recorded(t, desk); len(got) != 0 {
			t.Errorf("%s: recorded %q", what, got)
		}
	}
}

// TestE12APublishIsKilledAnywhere: what new machines are served is the old release
// or the new one, whole, and the next push brings the new.
func TestE12APublishIsKilledAnywhere(t *testing.T) {
	l := layout.Layout{Root: t.TempDir()}
	p := releaser(t, l)
	for name, counter := range map[string]uint64{"old.tar": 1, "new.tar": 2} {
		if err := os.WriteFile(filepath.Join(l.Root, name), bundled(t, released(t, p, "x86_64", counter)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	desk, store, err := bare(l)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pushFile(desk, filepath.Join(l.Root, "old.tar")), store.Close()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	kills := killed(t, l, func(t *testing.T, at string, l layout.Layout) {
		desk, store, err := bare(l)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		defer store.Close()
		if _, err := desk.Content.Collect(t.Context(), kept(desk)); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		got := served(desk)
		seen[got]++
		if got != "1.0.1 x86_64 push" && got != "1.0.2 x86_64 push" {
			t.Errorf("%s: it serves %q", at, got)
		}
		if err := pushFile(desk, filepath.Join(l.Root, "new.tar")); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		if got := served(desk); got != "1.0.2 x86_64 push" {
			t.Errorf("%s, and again: it serves %q", at, got)
		}
	})
	if kills < 8 || len(seen) != 2 {
		t.Errorf("%d kills hit; served then was %v", kills, seen)
	}
}

func TestJoinSaysWhereAndWhat(t *testing.T) {
	client, desk := open(t)
	p := releaser(t, desk.Layout)
	ask := func(q admin.Joining) (admin.Joined, error) { return admin.Join.Ask(t.Context(), client, q) }
	if _, err := ask(admin.Joining{}); fault.KindOf(err) != fault.Refused || !strings.Contains(fault.RemedyOf(err), "repository_listen") || !strings.Contains(fault.RemedyOf(err), desk.Layout.ControllerConfig()) {
		t.Errorf("not listening: %v, %q", err, fault.RemedyOf(err))
	}
	serving(t, desk, "0.0.0.0:0")
	port := fmt.Sprint(desk.RepositoryServed[0].Port())
	if _, err := ask(admin.Joining{}); fault.KindOf(err) != fault.Refused || !strings.Contains(fault.RemedyOf(err), "mesh-controller push") {
		t.Errorf("nothing to serve: %v", err)
	}
	r := released(t, p, "x86_64", 7)
	if err := r.Lay(desk.Layout.ControllerSeed()); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(admin.Joining{Architecture: "arm64"}); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "no release for aarch64 here, but for x86_64") {
		t.Errorf("another architecture: %v", err)
	}
	err := desk.Office.Store.Update(func(tx *state.Tx) error {
		_, err1 := tx.AddAddress("mesh.example.com:7443")
		_, err2 := tx.AddAddress("192.0.2.7:7443")
		return errors.Join(err1, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"": "192.0.2.7:" + port + " mesh.example.com:" + port, "box": "box:" + port, "box:80": "box:80", "2001:db8::1": "", "[192.0.2.9]": "192.0.2.9:" + port,
	} {
		a, err := ask(admin.Joining{Address: given})
		if want == "" {
			continue // whether IPv6 is served is the machine's
		}
		if err != nil || strings.Join(a.Addresses, " ") != want {
			t.Errorf("%q: %v, %v, want %s", given, a.Addresses, err, want)
		}
	}
	for _, wrong := range []string{"127.0.0.1:1", "a b", "x;reboot", "$(reboot)", "0.0.0.0", "[::1%lo]"} {
		if a, err := ask(admin.Joining{Address: wrong}); err == nil {
			t.Errorf("%q is taken: %v", wrong, a.Addresses)
		}
	}

	// What it says is believed for its signature only.
	machine, err := trust.Machine(desk.Layout)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ask(admin.Joining{})
	if err != nil {
		t.Fatal(err)
	}
	if l, err := a.Believe(machine); err != nil || l.Version != "1.0.7" {
		t.Errorf("%+v, %v", l, err)
	}
	lie := a
	lie.List = bytes.Replace(a.List, []byte(l256(r, "floor/nox-mesh-host-1.0.7-linux-x86_64.tar.gz")), []byte(strings.Repeat("0", 64)), 1)
	if bytes.Equal(lie.List, a.List) {
		t.Fatal("the list was not changed")
	}
	if _, err := lie.Believe(machine); fault.KindOf(err) != fault.Refused {
		t.Errorf("another digest is believed: %v", err)
	}
	for _, address := range []string{"box:1; reboot", "$(reboot):1", "box:1\nreboot", "", "'box':1"} {
		lie = a
		lie.Addresses = []string{a.Addresses[0], address}
		if _, err := lie.Believe(machine); fault.KindOf(err) != fault.Refused {
			t.Errorf("the address %q is believed: %v", address, err)
		}
	}
	stranger, err := seedtest.New()
	if err != nil {
		t.Fatal(err)
	}
	lie = a
	lie.List, lie.Signature = []byte(released(t, stranger, "x86_64", 8).Files["release.json"]), []byte(released(t, stranger, "x86_64", 8).Files["release.json.sigstore.json"])
	if _, err := lie.Believe(machine); fault.KindOf(err) != fault.Refused {
		t.Errorf("a stranger is believed: %v", err)
	}
}

func l256(r *seedtest.Release, name string) string {
	return digest.FromString(r.Files[name]).Encoded()
}
