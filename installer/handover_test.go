package installer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// pacmans is what the package lays down, as far as it matters here.
func pacmans(t testing.TB, l layout.Layout, binary []byte) {
	t.Helper()
	write(t, l.Path("/usr/bin/mesh-host"), string(binary))
	if err := os.Chmod(l.Path("/usr/bin/mesh-host"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, l.Path(packagedUnit), string(pkgbuild.HostUnit(pkgbuild.PackagedHost)))
	write(t, l.Path("/usr/share/nox-mesh/trust/1.root.json"), "the package's")
}

func there(l layout.Layout, path string) bool {
	_, err := os.Lstat(l.Path(path))
	return err == nil
}

// TestAPackageOverAFloor leaves the package's host, and what is not the tarball's.
func TestAPackageOverAFloor(t *testing.T) {
	p, l := newPublisher(t), image(t)
	from := p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	mustInstall(t, l, from)
	write(t, l.HostConfig(), "reconcile_interval = \"1h\"\n")
	write(t, l.HostIdentity(), "{}")
	launcher := read(t, l.Launcher())
	if _, twice := Twice(l); twice {
		t.Error("a tarball alone is installed twice")
	}
	pacmans(t, l, standIn(t, "1.1.0"))
	if remedy, twice := Twice(l); !twice || remedy != "/usr/bin/mesh-host install --hand-over --root "+l.Root {
		t.Errorf("twice %v, remedy %q", twice, remedy)
	}
	if _, err := Install(t.Context(), Options{Layout: l, From: from}); fault.KindOf(err) != fault.Refused || !strings.Contains(fault.RemedyOf(err), "nox-mesh-host") {
		t.Errorf("a tarball over a package: %v (%s)", err, fault.RemedyOf(err))
	}
	s, err := HandOver(t.Context(), HandOverOptions{Layout: l})
	if err != nil || len(s.Kept) != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	for path, stays := range map[string]bool{
		"/usr/local/bin/mesh-host": false, "/usr/local/share/nox-mesh": false, "/etc/systemd/system/mesh-host.service": false,
		"/var/lib/nox-mesh/install.json": false, "/usr/bin/mesh-host": true, packagedUnit: true, "/usr/share/nox-mesh/trust/1.root.json": true,
		"/usr/local/bin": true, "/etc/systemd/system": true, "/var/lib/nox-mesh/host/identity.json": true, "/var/lib/nox-mesh/host/trust.json": true,
	} {
		if there(l, path) != stays {
			t.Errorf("%s: there is %v", path, !stays)
		}
	}
	if read(t, l.HostConfig()) != "reconcile_interval = \"1h\"\n" || read(t, l.Launcher()) != launcher {
		t.Error("the configuration or the launcher was touched")
	}
	if _, twice := Twice(l); twice {
		t.Error("it is installed twice still")
	}
	after := tree(t, l.Root, true)
	if s, err := HandOver(t.Context(), HandOverOptions{Layout: l}); err != nil || len(s.Removed) != 0 || tree(t, l.Root, true) != after {
		t.Errorf("a second time: %+v, %v", s, err)
	}
	if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Purge: true}); fault.KindOf(err) != fault.Refused || tree(t, l.Root, true) != after {
		t.Errorf("an uninstall of the package's: %v", err)
	}

	// And back: the package was removed, which keeps the state.
	for _, path := range []string{"/usr/bin/mesh-host", packagedUnit, "/usr/share/nox-mesh"} {
		if err := os.RemoveAll(l.Path(path)); err != nil {
			t.Fatal(err)
		}
	}
	mustInstall(t, l, from)
	if !there(l, "/usr/local/bin/mesh-host") || read(t, l.HostIdentity()) != "{}" {
		t.Error("the tarball's host is not back, with its state")
	}
}

func TestHandOverKeepsWhatIsNotTheTarballs(t *testing.T) {
	p := newPublisher(t)
	from := p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for what, c := range map[string]struct {
		prepare func(*testing.T, layout.Layout)
		kept    []string
	}{
		"as it was laid down": {func(*testing.T, layout.Layout) {}, nil},
		"a person's binary": {func(t *testing.T, l layout.Layout) { write(t, l.HostBinary("/usr/local"), "mine") },
			[]string{"/usr/local/bin/mesh-host"}},
		"a host that replaced itself": {func(t *testing.T, l layout.Layout) {
			for _, path := range []string{l.HostBinary("/usr/local"), l.Launcher()} {
				replaceWith(t, path, standIn(t, "1.1.0"))
			}
		}, nil},
		"a host that replaced itself and has not proved it": {func(t *testing.T, l layout.Layout) {
			replaceWith(t, l.HostBinary("/usr/local"), standIn(t, "1.1.0"))
			holds(t, l, l.HostBinary("/usr/local"))
		}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			l := image(t)
			mustInstall(t, l, from)
			pacmans(t, l, standIn(t, "1.2.0"))
			c.prepare(t, l)
			s, err := HandOver(t.Context(), HandOverOptions{Layout: l})
			if err != nil || !slices.Equal(s.Kept, c.kept) {
				t.Errorf("%v, kept %q", err, s.Kept)
			}
			if there(l, "/usr/local/bin/mesh-host") != (c.kept != nil) {
				t.Error("the binary")
			}
		})
	}
}

func replaceWith(t *testing.T, path string, binary []byte) {
	t.Helper()
	write(t, path+".new", string(binary))
	if err := errors.Join(os.Chmod(path+".new", 0o755), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// holds runs the binary as a host that holds the store.
func holds(t *testing.T, l layout.Layout, binary string) {
	t.Helper()
	flock, err := exec.LookPath("flock")
	if err != nil {
		t.Skip("flock(1) is not here")
	}
	write(t, l.HostStore(), "store")
	cmd := exec.Command(flock, "--no-fork", "-x", l.HostStore(), binary, "run")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	up := make([]byte, 3)
	if _, err := out.Read(up); err != nil || string(up) != "up\n" {
		t.Fatalf("%q, %v", up, err)
	}
}

func TestHandOverRefusesUntouched(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for what, c := range map[string]struct {
		prepare func(layout.Layout)
		say     string
	}{
		"no package":     {func(layout.Layout) {}, "no package owns the host"},
		"half a package": {func(l layout.Layout) { pacmans(t, l, nil); os.Chmod(l.Path("/usr/bin/mesh-host"), 0o644) }, "no package owns the host"},
		"without a unit": {func(l layout.Layout) { pacmans(t, l, []byte("x")); registered(t, l); os.Remove(l.Path(packagedUnit)) }, packagedUnit},
		"a changed unit": {func(l layout.Layout) { pacmans(t, l, []byte("x")); write(t, l.Path(unitPath()), "[Service]\n") }, "was changed here"},
		"a masked unit": {func(l layout.Layout) {
			pacmans(t, l, []byte("x"))
			os.Remove(l.Path(unitPath()))
			os.Symlink("/dev/null", l.Path(unitPath()))
		}, "was changed here"},
		"a strange file": {func(l layout.Layout) { pacmans(t, l, []byte("x")); write(t, l.InstallManifest(), "{") }, "install.json"},
		"another at work": {func(l layout.Layout) {
			pacmans(t, l, []byte("x"))
			unlock, err := lock(l.State())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(unlock)
		}, "another install"},
	} {
		l := image(t)
		mustInstall(t, l, from)
		c.prepare(l)
		before := tree(t, l.Root, true)
		_, err := HandOver(t.Context(), HandOverOptions{Layout: l})
		if err == nil || !strings.Contains(err.Error(), c.say) || tree(t, l.Root, true) != before {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// registered is a package that pacman knows of, with no unit.
func registered(t testing.TB, l layout.Layout) {
	t.Helper()
	write(t, l.Path("/var/lib/pacman/local/nox-mesh-host-1.0.0-1/desc"), "%NAME%\nnox-mesh-host\n")
}

func TestAPackageIsKnownByItsDatabase(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for name, owned := range map[string]bool{"nox-mesh-host-1.0.0-1": true, "nox-mesh-host-extra-1.0.0-1": false, "nox-mesh-keyring-1-1": false} {
		l := image(t)
		write(t, l.Path("/usr/bin/mesh-host"), "x")
		write(t, l.Path("/var/lib/pacman/local/"+name+"/desc"), "")
		if _, err := Install(t.Context(), Options{Layout: l, From: from}); (fault.KindOf(err) == fault.Refused) != owned {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHandOverIsKilledAnywhere: a second one completes it, and the package's host
// is never without a unit that starts it.
func TestHandOverIsKilledAnywhere(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not here")
	}
	from := newPublisher(t).unpacked(t, "1.0.0", []byte("#!/bin/sh\necho mesh-host 1.0.0\n"), nil)
	prepared := func() layout.Layout {
		l := image(t)
		mustInstall(t, l, from)
		pacmans(t, l, []byte("the package's"))
		return l
	}
	want, kills := "", 0
	for _, calls := range []string{"unlinkat", "fsync", "renameat,renameat2,rename"} {
		for n := 1; ; n++ {
			l := prepared()
			killed := killedAt(t, strace, calls, n, "INSTALLER_TEST_ROOT="+l.Root, "INSTALLER_TEST_HAND_OVER=1")
			if killed && there(l, "/etc/systemd/system/mesh-host.service") && !there(l, "/usr/local/bin/mesh-host") {
				t.Errorf("%s %d: the unit starts what is gone", calls, n)
			}
			if _, err := HandOver(context.Background(), HandOverOptions{Layout: l}); err != nil {
				t.Fatalf("%s %d: %v", calls, n, err)
			}
			if got := tree(t, l.Root, false); want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s %d:\n%s", calls, n, diff(want, got))
			}
			if !killed {
				break
			}
			kills++
		}
	}
	if kills < 5 {
		t.Errorf("only %d kills hit", kills)
	}
}

func TestHandOverAsksTheRunningHost(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for running, want := range map[bool]int{true: 1, false: 0} {
		l, asked := image(t), 0
		mustInstall(t, l, from)
		pacmans(t, l, standIn(t, "1.1.0"))
		if running {
			holds(t, l, l.HostBinary("/usr/local"))
		}
		var said strings.Builder
		_, err := HandOver(t.Context(), HandOverOptions{Layout: l, Out: &said, Pass: passer(func(ctx context.Context) error {
			asked++
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("it may wait for ever")
			}
			return errors.New("busy")
		})})
		if err != nil || asked != want || strings.Contains(said.String(), "at its next pass") != running {
			t.Errorf("running %v: asked %d times, %v, %q", running, asked, err, said.String())
		}
	}
}

type passer func(context.Context) error

func (p passer) Pass(ctx context.Context) error { return p(ctx) }

func TestTheUnitIsEnabledAnew(t *testing.T) {
	m, asked := recorder(t)
	if err := m.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, s := range []string{"daemon-reload", "--quiet is-enabled mesh-host.service", "reenable mesh-host.service"} {
		want += fmt.Sprintln("--no-ask-password", s)
	}
	if asked() != want {
		t.Errorf("asked for\n%s", asked())
	}
}
