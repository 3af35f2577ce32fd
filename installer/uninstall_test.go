package installer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

type owns int

func (n owns) Owns(context.Context) (int, error) {
	if n < 0 {
		return 0, errors.New("cannot ask the host: it is gone")
	}
	return int(n), nil
}

func TestI01UninstallLeavesWhatWasThere(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for what, prepare := range map[string]func(layout.Layout){
		"a plain machine":   func(layout.Layout) {},
		"directories there": func(l layout.Layout) { write(t, l.Path("/etc/nox-mesh/controller.toml"), "") },
		"an empty machine":  func(l layout.Layout) { os.RemoveAll(l.Root); os.MkdirAll(l.Root, 0o755) },
	} {
		l := image(t)
		prepare(l)
		before := tree(t, l.Root, false)
		mustInstall(t, l, from)
		mustInstall(t, l, from)
		if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Owner: owns(0), Purge: true}); err != nil {
			t.Fatal(err)
		}
		if after := tree(t, l.Root, false); after != before {
			t.Errorf("%s: left:\n%s", what, diff(before, after))
		}
	}
}

func TestUninstallOfAnImageThatInstallBegan(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	l := image(t)
	if err := os.RemoveAll(l.Root); err != nil {
		t.Fatal(err)
	}
	mustInstall(t, l, from)
	if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Owner: owns(0), Purge: true}); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(l.Root + "/*"); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

func TestUninstallAfterAnUpgrade(t *testing.T) {
	p, l := newPublisher(t), image(t)
	before := tree(t, l.Root, false)
	mustInstall(t, l, p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	p.rotate(t)
	mustInstall(t, l, p.unpacked(t, "1.1.0", standIn(t, "1.1.0"), func(c map[string]string, _ *pkgbuild.Manifest) { c["host.toml"] = "# 1.1\n" }))
	if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Purge: true}); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, l.Root, false); after != before {
		t.Errorf("left:\n%s", diff(before, after))
	}
}

func TestI01UninstallKeepsWhatAPersonChanged(t *testing.T) {
	l := image(t)
	mustInstall(t, l, newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	write(t, l.HostConfig(), "mine\n")
	write(t, l.Path("/etc/systemd/system/mesh-host.service"), "mine too\n")
	s, err := Uninstall(t.Context(), UninstallOptions{Layout: l})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(s.Kept)
	if !slices.Equal(s.Kept, []string{"/etc/nox-mesh/host.toml", "/etc/systemd/system/mesh-host.service"}) {
		t.Errorf("kept %v", s.Kept)
	}
	if read(t, l.HostConfig()) != "mine\n" {
		t.Error("the configuration was touched")
	}
}

func TestUninstallKeepsStateUnlessPurged(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for _, purge := range []bool{false, true} {
		l := image(t)
		mustInstall(t, l, from)
		write(t, l.HostStore(), "store")
		write(t, filepath.Join(l.Content(), "blobs/sha256/aa"), "blob")
		if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Purge: purge}); err != nil {
			t.Fatal(err)
		}
		_, serr := os.Stat(l.HostStore())
		_, derr := os.Stat(l.State())
		if gone := errors.Is(serr, os.ErrNotExist) && errors.Is(derr, os.ErrNotExist); gone != purge {
			t.Errorf("purge %v: store %v, state %v", purge, serr, derr)
		}
		for _, path := range []string{l.LauncherDir(), l.InstallManifest()} {
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("purge %v: %s is there", purge, path)
			}
		}
	}
}

func TestUninstallRefuses(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for _, c := range []struct {
		what    string
		prepare func(layout.Layout)
		o       UninstallOptions
		kind    fault.Kind
		say     string
	}{
		{"owned resources", nil, UninstallOptions{Owner: owns(3)}, fault.Refused, "owns 3 resources"},
		{"owned resources and purge", nil, UninstallOptions{Owner: owns(3), KeepResources: true, Purge: true}, fault.Usage, "purge"},
		{"nobody knows what is owned", nil, UninstallOptions{Owner: owns(-1)}, fault.Failed, "it is gone"},
		{"nothing installed", func(l layout.Layout) { os.Remove(l.InstallManifest()) }, UninstallOptions{}, fault.Failed, "install.json"},
		{"a record of a newer version", func(l layout.Layout) { write(t, l.InstallManifest(), `{"schema": 2}`) }, UninstallOptions{}, fault.Failed, "schema 2"},
		{"a record that leads out", func(l layout.Layout) {
			write(t, l.InstallManifest(), `{"schema": 1, "prefix": "/usr/local", "files": [{"path": "/usr/../../x"}]}`)
		}, UninstallOptions{}, fault.Failed, "not absolute and clean"},
	} {
		l := image(t)
		mustInstall(t, l, from)
		if c.prepare != nil {
			c.prepare(l)
		}
		before := tree(t, l.Root, true)
		c.o.Layout = l
		_, err := Uninstall(t.Context(), c.o)
		if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v (kind %d)", c.what, err, fault.KindOf(err))
		}
		if after := tree(t, l.Root, true); after != before {
			t.Errorf("%s: touched:\n%s", c.what, diff(before, after))
		}
	}
}

func TestI08RunningHostIsNotUninstalled(t *testing.T) {
	l := image(t)
	mustInstall(t, l, newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	write(t, l.HostStore(), "store")
	store, err := os.Open(l.HostStore())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := syscall.Flock(int(store.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	before := tree(t, l.Root, true)
	_, err = Uninstall(t.Context(), UninstallOptions{Layout: l})
	if remedy := fault.RemedyOf(err); !strings.HasSuffix(remedy, fmt.Sprintf("kill %d", os.Getpid())) {
		t.Errorf("does not say how: %q", remedy)
	}
	if err == nil || !strings.Contains(err.Error(), "the host is running") || before != tree(t, l.Root, true) {
		t.Errorf("%v", err)
	}
}

func TestKeptResourcesKeepTheLauncher(t *testing.T) {
	l := image(t)
	before := tree(t, l.Root, false)
	mustInstall(t, l, newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	s, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Owner: owns(2), KeepResources: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.Launcher()); err != nil || !slices.Equal(s.Kept, []string{"/var/lib/nox-mesh/launcher"}) {
		t.Errorf("launcher %v, kept %v", err, s.Kept)
	}
	if _, err := os.Stat(l.HostBinary("/usr/local")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the binary stayed")
	}
	if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Owner: owns(0), Purge: true}); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, l.Root, false); after != before {
		t.Errorf("left in the end:\n%s", diff(before, after))
	}
}

// TestALeftProcessKeepsTheLauncher: retired with --keep-resources, the host owns it no
// more, and it runs on.
func TestALeftProcessKeepsTheLauncher(t *testing.T) {
	l := image(t)
	before := tree(t, l.Root, false)
	mustInstall(t, l, newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	write(t, filepath.Join(l.Processes(), ".gone.removed/definition.json"), "{}")
	launcher := read(t, l.Launcher())
	write(t, filepath.Join(l.Processes(), "web/definition.json"), "{}")
	for _, when := range []string{"with a record", "without"} {
		_, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Owner: owns(0), Purge: true})
		if fault.KindOf(err) != fault.Usage || !strings.Contains(fault.RemedyOf(err), "disable --now nox-web") {
			t.Errorf("purge %s: %v (%s)", when, err, fault.RemedyOf(err))
		}
		if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Owner: owns(0)}); err != nil {
			t.Fatal(err)
		}
		if read(t, l.Launcher()) != launcher || there(l, "/usr/local/bin/mesh-host") {
			t.Error("the launcher is gone, or the binary is not")
		}
	}
	if err := os.RemoveAll(filepath.Join(l.Processes(), "web")); err != nil {
		t.Fatal(err)
	}
	mustUninstall(t, UninstallOptions{Layout: l, Owner: owns(0), Purge: true})
	if after := tree(t, l.Root, false); after != before {
		t.Errorf("left in the end:\n%s", diff(before, after))
	}
}

func TestHostThatReplacedItselfIsTakenAway(t *testing.T) {
	l := image(t)
	mustInstall(t, l, newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	for _, path := range []string{l.HostBinary("/usr/local"), l.Launcher()} {
		write(t, path+".new", string(standIn(t, "1.1.0")))
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Uninstall(t.Context(), UninstallOptions{Layout: l})
	if err != nil || len(s.Kept) != 0 {
		t.Errorf("%v, kept %v", err, s.Kept)
	}
}

func TestSecondInstallerWaitsOutside(t *testing.T) {
	l := image(t)
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	mustInstall(t, l, from)
	unlock, err := lock(l.State())
	if err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]func() error{
		"install":   func() error { _, err := Install(t.Context(), Options{Layout: l, From: from}); return err },
		"uninstall": func() error { _, err := Uninstall(t.Context(), UninstallOptions{Layout: l}); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "another install or uninstall") {
			t.Errorf("%s: %v", what, err)
		}
	}
	unlock()
	if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l}); err != nil {
		t.Error(fmt.Errorf("after it: %w", err))
	}
}

func TestAPlainUninstallForgetsNoRevokedKey(t *testing.T) {
	p, l := newPublisher(t), image(t)
	old := p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	mustInstall(t, l, old)
	p.rotate(t)
	mustInstall(t, l, p.unpacked(t, "1.1.0", standIn(t, "1.1.0"), nil))
	if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l}); err != nil {
		t.Fatal(err)
	}
	// Neither the old release nor another publisher's is a first install now.
	for name, from := range map[string]string{"old": old, "another": newPublisher(t).unpacked(t, "2.0.0", standIn(t, "2.0.0"), nil)} {
		if s, err := Install(t.Context(), Options{Layout: l, From: from, AllowOlder: true}); fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}
