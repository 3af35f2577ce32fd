package installer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

const somebody = 1000

// needRoot skips what only root can prepare.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
}

// trap is a program that leaves a trace when it is run.
func trap(t *testing.T, path string) (sprung func() bool) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "sprung")
	write(t, path, "#!/bin/sh\n: >"+trace+"\necho mesh-host 1.0.0\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return func() bool { _, err := os.Lstat(trace); return err == nil }
}

func TestPlaceOfSomebodyElseIsRefusedUntouched(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for _, path := range []string{
		"/", "/usr", "/usr/local", "/usr/local/bin", "/usr/local/share", "/usr/local/share/nox-mesh", "/usr/local/share/nox-mesh/trust",
		"/etc", "/etc/nox-mesh", "/etc/nox-mesh/trust", "/etc/systemd/system", "/run", "/run/nox-mesh",
		"/var", "/var/lib", "/var/lib/nox-mesh", "/var/lib/nox-mesh/launcher", "/var/lib/nox-mesh/host", "/var/lib/nox-mesh/content",
		"/var/lib/nox-mesh/process",
	} {
		for what, change := range map[string]func(string) error{
			"is uid 1000's":                  func(p string) error { return os.Lchown(p, somebody, somebody) },
			"may be written by all":          func(p string) error { return os.Chmod(p, 0o777) },
			"may be written by all (sticky)": func(p string) error { return os.Chmod(p, 0o777|os.ModeSticky) },
			"may be written by a group":      func(p string) error { return errors.Join(os.Chmod(p, 0o775), os.Lchown(p, -1, somebody)) },
		} {
			if os.Geteuid() != 0 && !strings.Contains(what, "all") {
				continue
			}
			l := image(t)
			if err := os.MkdirAll(l.Path(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := change(l.Path(path)); err != nil {
				t.Fatal(err)
			}
			err := refused(t, l, from, path+" "+what)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", l.Path(path))) || !strings.Contains(fault.RemedyOf(err), l.Path(path)) {
				t.Errorf("%s %s: %v (%s)", path, what, err, fault.RemedyOf(err))
			}
		}
	}
}

func TestFileOfSomebodyElseIsNotBelieved(t *testing.T) {
	needRoot(t)
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for path, text := range map[string]string{
		"/etc/nox-mesh/host.toml":                `reconcile_interval = "1s"`,
		"/var/lib/nox-mesh/install.json":         `{"schema": 1, "prefix": "/usr/local", "files": [{"path": "/etc/hostname", "sha256": []}]}`,
		"/var/lib/nox-mesh/host/identity.json":   "{}",
		"/var/lib/nox-mesh/host/trust.json":      "{}",
		"/usr/local/share/nox-mesh/trust/me.pub": "x",
		"/etc/nox-mesh/trust/me.pub":             "x",
	} {
		l := image(t)
		write(t, l.Path(path), text)
		if err := os.Chmod(l.State(), 0o700); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.Lchown(l.Path(path), somebody, somebody); err != nil {
			t.Fatal(err)
		}
		if err := refused(t, l, from, path); err == nil || !strings.Contains(err.Error(), "uid 1000") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What is ours by its content, but not by its owner, could be changed after.
func TestOurFileInSomebodysHandsIsLaidAgain(t *testing.T) {
	needRoot(t)
	l := image(t)
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	mustInstall(t, l, from)
	paths := []string{l.HostBinary("/usr/local"), l.Launcher(), l.Path("/etc/systemd/system/mesh-host.service")}
	for _, p := range paths {
		if err := os.Lchown(p, somebody, somebody); err != nil {
			t.Fatal(err)
		}
	}
	mustInstall(t, l, from)
	for _, p := range paths {
		if own, err := mine(p); err != nil || !own {
			t.Errorf("%s is still somebody's (%v)", p, err)
		}
	}
}

func TestUnknownLauncherIsReplacedAndNeverRun(t *testing.T) {
	l := image(t)
	sprung := trap(t, l.Launcher())
	if s := mustInstall(t, l, newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)); !strings.Contains(strings.Join(s.Changed, " "), pkgbuild.LauncherPath) {
		t.Errorf("changed %v", s.Changed)
	}
	if sprung() {
		t.Error("install ran a program that it did not know")
	}
	if read(t, l.Launcher()) != string(standIn(t, "1.0.0")) {
		t.Error("it stayed")
	}
}

func TestStateOfSomebodyElseIsNeverRun(t *testing.T) {
	needRoot(t)
	l := image(t)
	sprung := trap(t, l.Launcher())
	for _, p := range []string{l.State(), l.LauncherDir(), l.Launcher()} {
		if err := os.Lchown(p, somebody, somebody); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, l, newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil), "a state directory of uid 1000")
	if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Purge: true}); fault.KindOf(err) != fault.Refused {
		t.Errorf("uninstall: %v", err)
	}
	if sprung() {
		t.Error("it was run")
	}
}

// The launcher that an earlier version left is known over every upgrade, and
// when it was the host that put it there.
func TestKnownLauncherStays(t *testing.T) {
	p, l := newPublisher(t), image(t)
	for _, v := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		mustInstall(t, l, p.unpacked(t, v, standIn(t, v), nil))
		if read(t, l.Launcher()) != string(standIn(t, "1.0.0")) {
			t.Errorf("after %s it is not that of 1.0.0", v)
		}
	}
	write(t, l.Launcher(), string(standIn(t, "1.2.0"))) // proven
	mustInstall(t, l, p.unpacked(t, "1.3.0", standIn(t, "1.3.0"), nil))
	if read(t, l.Launcher()) != string(standIn(t, "1.2.0")) {
		t.Error("the proven 1.2.0 is gone")
	}
}

func TestOlderTarballIsRefusedUnlessAllowed(t *testing.T) {
	p, l := newPublisher(t), image(t)
	old := p.unpacked(t, "1.0.0-rc.1", standIn(t, "1.0.0-rc.1"), nil)
	mustInstall(t, l, p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	err := refused(t, l, old, "an older tarball")
	if err == nil || !strings.Contains(err.Error(), "1.0.0-rc.1 is older than 1.0.0") || !strings.Contains(fault.RemedyOf(err), "--allow-older") {
		t.Errorf("%v (%s)", err, fault.RemedyOf(err))
	}
	// One that does not run was never installed, and forbids nothing.
	if _, err := Install(t.Context(), Options{Layout: l, From: p.unpacked(t, "2.0.0", []byte("no program"), nil)}); fault.KindOf(err) != fault.Refused {
		t.Errorf("%v", err)
	}
	mustInstall(t, l, p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	s, err := Install(t.Context(), Options{Layout: l, From: old, AllowOlder: true})
	if err != nil || s.Version != "1.0.0-rc.1" {
		t.Errorf("allowed: %+v, %v", s, err)
	}
	mustInstall(t, l, p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
}

func TestUninstallStaysUnderItsRoot(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for _, link := range []string{
		"/var", "/var/lib", "/var/lib/nox-mesh", "/var/lib/nox-mesh/host", "/var/lib/nox-mesh/content", "/var/lib/nox-mesh/launcher",
		"/usr", "/usr/local/bin", "/usr/local/share/nox-mesh", "/usr/local/share/nox-mesh/trust", "/etc", "/etc/nox-mesh", "/etc/systemd/system",
	} {
		for _, purge := range []bool{false, true} {
			l := image(t)
			mustInstall(t, l, from)
			write(t, filepath.Join(l.Content(), "blob"), "blob")
			write(t, l.HostStore(), "store")
			out := filepath.Join(t.TempDir(), "out")
			if err := os.Rename(l.Path(link), out); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(out, l.Path(link)); err != nil {
				t.Fatal(err)
			}
			before := tree(t, out, true)
			_, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Purge: purge})
			if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "leads out") {
				t.Errorf("%s, purge %v: %v", link, purge, err)
			}
			if after := tree(t, out, true); after != before {
				t.Errorf("%s, purge %v: outside:\n%s", link, purge, diff(before, after))
			}
		}
	}
}

func TestRecordThatLeadsOutIsNotFollowed(t *testing.T) {
	l := image(t)
	mustInstall(t, l, newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	out := t.TempDir()
	write(t, filepath.Join(out, "bin/victim"), "precious")
	if err := os.Symlink(out, l.Path("/x")); err != nil {
		t.Fatal(err)
	}
	write(t, l.InstallManifest(), fmt.Sprintf(`{"schema": 1, "prefix": "/usr/local", "directories": ["/x/bin"],
		"files": [{"path": "/x/bin/victim", "sha256": [%q]}]}`, fingerprint([]byte("precious"))))
	_, err := Uninstall(t.Context(), UninstallOptions{Layout: l})
	if fault.KindOf(err) != fault.Refused || read(t, filepath.Join(out, "bin/victim")) != "precious" {
		t.Errorf("%v", err)
	}
}

func TestPurgeTakesWhatAPlainUninstallLeft(t *testing.T) {
	l := image(t)
	if err := os.Mkdir(l.Path("/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := tree(t, l.Root, false)
	mustInstall(t, l, newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	write(t, l.HostSocket(), "") // of a host that was killed
	write(t, l.HostStore(), "store")
	write(t, filepath.Join(l.Content(), "blobs/sha256/aa"), "blob")
	if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Owner: owns(0)}); err != nil {
		t.Fatal(err)
	}
	if read(t, l.HostStore()) != "store" {
		t.Error("the plain uninstall took the state")
	}
	if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Owner: owns(2), Purge: true}); fault.KindOf(err) != fault.Refused {
		t.Errorf("while it owns something: %v", err)
	}
	s, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Owner: owns(0), Purge: true})
	if err != nil || !strings.Contains(strings.Join(s.Removed, " "), "/var/lib/nox-mesh") {
		t.Errorf("%+v, %v", s, err)
	}
	if after := tree(t, l.Root, false); after != before {
		t.Errorf("left:\n%s", diff(before, after))
	}
}

// TestWhatIsOwnedIsRetiredFirst: an empty declaration is for a machine that is in no
// mesh, and undeclaring for one that still has a control plane.
func TestWhatIsOwnedIsRetiredFirst(t *testing.T) {
	l := image(t)
	mustInstall(t, l, newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	_, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Owner: owns(1)})
	if r := fault.RemedyOf(err); !strings.Contains(r, "mesh-host retire") || !strings.Contains(r, "--keep-resources") {
		t.Errorf("%q", r)
	}
}

// asOrdinaryUser calls f as uid 1000, where the tests are root's.
func asOrdinaryUser(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		if err := syscall.Setresuid(-1, somebody, -1); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Setresuid(-1, 0, -1); err != nil {
				t.Fatal(err)
			}
		}()
	}
	f()
}

func TestOrdinaryUserIsToldToUseSudo(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	asOrdinaryUser(t, func() {
		_, err := Install(t.Context(), Options{From: from})
		_, uerr := Uninstall(t.Context(), UninstallOptions{})
		for _, err := range []error{err, uerr} {
			if fault.KindOf(err) != fault.Failed || fault.RemedyOf(err) != "use sudo" {
				t.Errorf("%v (%s)", err, fault.RemedyOf(err))
			}
		}
	})
}

func TestUnwritableRootAdvisesAnotherRoot(t *testing.T) {
	top, err := os.MkdirTemp("", "unwritable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(top, 0o755); os.RemoveAll(top) })
	if err := os.Chmod(top, 0o555); err != nil {
		t.Fatal(err)
	}
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for dir := from; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	asOrdinaryUser(t, func() {
		_, err := Install(t.Context(), Options{Layout: layout.Layout{Root: filepath.Join(top, "image")}, From: from})
		if r := fault.RemedyOf(err); !errors.Is(err, syscall.EACCES) || !strings.Contains(r, "--root") || strings.Contains(r, "--prefix") {
			t.Errorf("%v (%s)", err, r)
		}
	})
}
