package apply

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func TestU10DetoursToTheHostsOwnAreRefused(t *testing.T) {
	l := newLab(t)
	lay := l.engine.Layout
	for _, d := range []string{lay.UnitDir(), lay.Path("/srv")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unit := filepath.Join(lay.UnitDir(), layout.HostUnit)
	for _, err := range []error{
		os.WriteFile(unit, []byte("x"), 0o644),
		os.Symlink(lay.UnitDir(), lay.Path("/srv/units")), // out of the root, when read literally
		os.Symlink("/var/lib/nox-mesh/host", lay.Path("/srv/state")),
		os.Symlink("../etc/systemd/system", lay.Path("/srv/relative")),
		os.Link(unit, lay.Path("/srv/hard")),
		os.WriteFile(lay.TrustState(), []byte("x"), 0o600),
		os.Link(lay.TrustState(), lay.Path("/srv/trust")),
		os.Symlink("/srv", filepath.Join(lay.UnitDir(), "out")),
		os.Symlink("/srv/e.conf", filepath.Join(lay.UnitDir(), "e.conf")),
		os.Symlink("loop.conf", filepath.Join(lay.UnitDir(), "loop.conf")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"/srv/relative/mesh-host.service.d/x.conf", "/srv/state/store.db", "/srv/hard", "/srv/trust"} {
		err := l.accept(aFile("a", p, "mine"))
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "host's own") {
			t.Errorf("%s: %v", p, err)
		}
	}
	// What is there leads a unit out of systemd's directories.
	for _, target := range []string{"out/e.conf", "/etc/systemd/system/out/e.conf", "e.conf", "loop.conf"} {
		err := l.accept(aLink("a", "/etc/systemd/system/foo.service", target))
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "resources[0].target: ") {
			t.Errorf("%s: %v", target, err)
		}
	}
	if w, _ := l.engine.Store.Wanted(); w != nil {
		t.Errorf("accepted: %+v", w)
	}
	if err := l.accept(aLink("a", "/etc/systemd/system/foo.service", "bar.service"), aLink("b", "/etc/systemd/system/off.service", "/dev/null")); err != nil {
		t.Error(err)
	}
}

func aLink(id, path, target string) string {
	return fmt.Sprintf(`{"id":%q,"type":"file","path":%q,"target":%q}`, id, path, target)
}

// The detour is not there yet: the same declaration makes it.
func TestU10DetoursThatTheDeclarationMakesAreRefusedWhole(t *testing.T) {
	for name, resources := range map[string][]string{
		"a symlink to the state":        {aLink("l", "/opt/s2", "/var/lib/nox-mesh"), aFile("a", "/opt/s2/host/identity.json", "evil")},
		"the same, later in the list":   {aFile("a", "/opt/s2/nox-mesh/host/identity.json", "evil"), aLink("l", "/opt/s2", "/var/lib")},
		"two hops":                      {aLink("l", "/opt/v", "/var/lib"), aFile("a", "/opt/v/nox-mesh/launcher/mesh-host", "evil")},
		"a relative one":                {aLink("l", "/opt/v", "../var/lib"), aFile("a", "/opt/v/nox-mesh/content/x", "evil")},
		"links through links":           {aLink("k", "/opt/k", "/srv"), aLink("l", "/opt/k/l", "/var/lib"), aFile("a", "/srv/l/nox-mesh/x", "evil")},
		"to the directory of units":     {aLink("l", "/srv/u", "/etc/systemd"), aFile("a", "/srv/u/system/mesh-.service.d/x.conf", "[Service]")},
		"dots behind a link":            {aLink("l", "/opt/l", "/var/lib/app/x"), aLink("m", "/opt/m", "l/../../nox-mesh"), aFile("a", "/opt/m/x", "evil")},
		"a parent of the trust":         {aLink("l", "/opt/share", "/usr/local/share"), aLink("m", "/opt/share/nox-mesh", "/evil")},
		"a link to the state elsewhere": {aLink("l", "/opt/v", "/var/lib"), aLink("m", "/srv/s", "/opt/v/nox-mesh")},
		"units out of their directory":  {aLink("l", "/srv/u", "/etc/systemd"), aLink("m", "/srv/u/system.control", "/srv/ctl"), aFile("a", "/srv/ctl/mesh-.service.d/x.conf", "[Service]")},
		"a loop":                        {aLink("l", "/opt/a", "b"), aLink("m", "/opt/b", "a"), aFile("a", "/opt/a/x", "evil")},
	} {
		l := newLab(t)
		err := l.accept(append([]string{aFile("z", "/etc/z", "z")}, resources...)...)
		if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "the host's own") && !strings.Contains(err.Error(), "is no place of units") && name != "a loop" {
			t.Errorf("%s: %v", name, err)
		}
		if w, _ := l.engine.Store.Wanted(); w != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestDeclaredLinksElsewhereAreAccepted(t *testing.T) {
	l := newLab(t)
	for _, p := range []string{"/opt", "/srv/data"} {
		if err := os.MkdirAll(l.engine.Layout.Path(p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.want(l.applied(aLink("l", "/opt/d", "/srv/data"), aFile("a", "/opt/d/x", "x"), aLink("n", "/opt/n", "nowhere/at/all")),
		"applied file:/opt/d", "applied file:/opt/d/x", "applied file:/opt/n")
	if got := l.read("/srv/data/x"); got != "x" {
		t.Errorf("%q", got)
	}
}

// Two spellings of one file would be applied in turn, pass for pass.
func TestTwoPathsThatLeadToOneFileAreRefused(t *testing.T) {
	l := newLab(t)
	must(t, os.MkdirAll(l.engine.Layout.Path("/srv"), 0o755))
	must(t, os.Symlink("/srv", l.engine.Layout.Path("/lnk")))
	for _, resources := range [][]string{
		{aFile("a", "/srv/c", "1"), aFile("b", "/lnk/c", "2")},
		{aLink("l", "/opt/k", "/srv"), aFile("a", "/opt/k/c", "1"), aFile("b", "/srv/c", "1")},
	} {
		if err := l.accept(resources...); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), `leads to "/srv/c", as the path of resources[`) {
			t.Errorf("%v", err)
		}
	}
	l.want(l.applied(aFile("a", "/srv/c", "1"), aFile("b", "/lnk/d", "2")), "applied file:/srv/c", "applied file:/lnk/d")
}

// What leads to the host's own comes to be after the declaration was accepted.
func TestADetourMadeAfterwardsFailsItsResourceAlone(t *testing.T) {
	l := newLab(t)
	lay := l.engine.Layout
	if err := os.MkdirAll(lay.Path("/opt/s"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.accept(aFile("a", "/opt/s/identity.json", "evil"), aFile("b", "/etc/b", "b")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(lay.Path("/opt/s")), os.Symlink("/var/lib/nox-mesh/host", lay.Path("/opt/s"))); err != nil {
		t.Fatal(err)
	}
	if got := l.pass(); !strings.Contains(got, "failed file:/opt/s/identity.json (") || !strings.Contains(got, "applied file:/etc/b") {
		t.Errorf("%s", got)
	}
	if _, err := os.Lstat(lay.HostIdentity()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was written: %v", err)
	}
}

// One that leads nowhere, such as anybody can make in a folder of his own, is no reason
// to refuse the rest.
func TestAPathThatLeadsNowhereFailsAlone(t *testing.T) {
	l := newLab(t)
	if err := os.MkdirAll(l.engine.Layout.Path("/opt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("self", l.engine.Layout.Path("/opt/self")); err != nil {
		t.Fatal(err)
	}
	if got := l.applied(aFile("a", "/opt/self/x", "x"), aFile("b", "/etc/b", "b")); !strings.Contains(got, "failed file:/opt/self/x (") ||
		!strings.Contains(got, "too many levels of symbolic links") || !strings.HasSuffix(got, "applied file:/etc/b") {
		t.Errorf("%s", got)
	}
}

// On a merged /usr the host's binary has several names.
func TestTheHostsBinaryByAnotherNameStays(t *testing.T) {
	for _, detour := range []struct{ link, target, path, real string }{
		{"/bin", "usr/bin", "/bin/mesh-host", "/usr/bin/mesh-host"},
		{"/usr/sbin", "bin", "/usr/sbin/mesh-host", "/usr/bin/mesh-host"},
		{"/opt/b", "/usr/local/bin", "/opt/b/mesh-host", "/usr/local/bin/mesh-host"},
	} {
		l := newLab(t)
		lay := l.engine.Layout
		for _, p := range []string{"/usr/bin", "/usr/local/bin", "/opt", "/etc"} {
			if err := os.MkdirAll(lay.Path(p), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range []error{
			os.Symlink(detour.target, lay.Path(detour.link)),
			os.WriteFile(lay.HostBinary("/usr"), []byte("older"), 0o755),
			os.WriteFile(lay.HostBinary("/usr/local"), []byte("older"), 0o755),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		l.applied(aFile("h", detour.path, "newer"))
		if got := l.read(detour.real); got != "newer" {
			t.Fatalf("%s: %q", detour.path, got)
		}
		l.want(l.applied(aFile("z", "/etc/z", "z")), "released file:"+detour.path+" (the host itself stays)", "applied file:/etc/z")
		if got := l.read(detour.real); got != "newer" {
			t.Errorf("%s: %q", detour.path, got)
		}
	}
}
