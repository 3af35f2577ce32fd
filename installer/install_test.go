package installer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

func TestMain(m *testing.M) {
	if root := os.Getenv("INSTALLER_TEST_ROOT"); root != "" {
		// A child of TestKillAnywhere and others.
		l := layout.Layout{Root: root}
		var err error
		if os.Getenv("INSTALLER_TEST_HAND_OVER") != "" {
			_, err = HandOver(context.Background(), HandOverOptions{Layout: l})
		} else if from := os.Getenv("INSTALLER_TEST_FROM"); from != "" {
			_, err = Install(context.Background(), Options{Layout: l, From: from})
		} else {
			_, err = Uninstall(context.Background(), UninstallOptions{Layout: l, Purge: true})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	os.RemoveAll(standIns.dir)
	os.Exit(code)
}

func mustInstall(t *testing.T, l layout.Layout, from string) Summary {
	t.Helper()
	s, err := Install(t.Context(), Options{Layout: l, From: from})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestI11InstallIsTheSameWhateverTheUmask(t *testing.T) {
	p := newPublisher(t)
	from := p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for _, mask := range []int{0o000, 0o022, 0o077} {
		l := image(t)
		old := syscall.Umask(mask)
		s, err := Install(t.Context(), Options{Layout: l, From: from})
		first := tree(t, l.Root, true)
		again, err2 := Install(t.Context(), Options{Layout: l, From: from})
		syscall.Umask(old)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if second := tree(t, l.Root, true); second != first || len(again.Changed) != 0 {
			t.Errorf("umask %03o: the second install changed:\n%s", mask, diff(first, second))
		}
		for path, mode := range map[string]os.FileMode{
			"/usr/local/bin/mesh-host":                    0o755,
			"/usr/local/share/nox-mesh":                   0o755 | os.ModeDir,
			"/usr/local/share/nox-mesh/trust/1.root.json": 0o644,
			"/etc/systemd/system/mesh-host.service":       0o644,
			"/etc/nox-mesh":                               0o755 | os.ModeDir,
			"/etc/nox-mesh/host.toml":                     0o644,
			"/var/lib/nox-mesh":                           0o700 | os.ModeDir,
			"/var/lib/nox-mesh/launcher":                  0o700 | os.ModeDir,
			"/var/lib/nox-mesh/launcher/mesh-host":        0o755,
			"/var/lib/nox-mesh/install.json":              0o600,
		} {
			fi, err := os.Lstat(l.Path(path))
			if err != nil || fi.Mode() != mode {
				t.Errorf("umask %03o: %s: %v, %v, want %v", mask, path, fi, err, mode)
			}
		}
		if !s.First || s.Version != "1.0.0" || s.Binary != "/usr/local/bin/mesh-host" || s.Service != "none" ||
			s.Root != "sha256:"+fingerprint(p.roots[0]) || s.RootVersion != 1 || len(s.Changed) != 5 {
			t.Errorf("summary %+v", s)
		}
		if unit := read(t, l.Path("/etc/systemd/system/mesh-host.service")); !strings.Contains(unit, "launch /usr/local/bin/mesh-host\n") {
			t.Errorf("the unit names a path of the image:\n%s", unit)
		}
	}
}

func TestSecondInstallChangesNothing(t *testing.T) {
	l := image(t)
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	mustInstall(t, l, from)
	before := tree(t, l.Root, true)
	if s := mustInstall(t, l, from); len(s.Changed) != 0 || s.First {
		t.Errorf("second install: %+v", s)
	}
	if after := tree(t, l.Root, true); after != before {
		t.Errorf("changed:\n%s", diff(before, after))
	}
}

// refused installs, and expects a refusal that touched nothing.
func refused(t *testing.T, l layout.Layout, from, what string) error {
	t.Helper()
	before := tree(t, l.Root, true)
	_, err := Install(t.Context(), Options{Layout: l, From: from})
	if fault.KindOf(err) != fault.Refused {
		t.Errorf("%s: %v (kind %d)", what, err, fault.KindOf(err))
	}
	if after := tree(t, l.Root, true); after != before {
		t.Errorf("%s: touched:\n%s", what, diff(before, after))
	}
	return err
}

// pack makes a tar in the order of the floor.
func pack(t *testing.T, dir string) []byte {
	t.Helper()
	cmd := exec.Command("tar", "-C", filepath.Dir(dir), "--format=ustar", "-cf", "-",
		filepath.Base(dir)+"/MANIFEST", filepath.Base(dir)+"/MANIFEST.sigstore.json", filepath.Base(dir)+"/LICENSE",
		filepath.Base(dir)+"/host.toml", filepath.Base(dir)+"/share", filepath.Base(dir)+"/mesh-host")
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("tar: %v", err)
	}
	return out
}

func TestI14CutTarballTouchesNothing(t *testing.T) {
	binary := []byte("#!/bin/sh\necho mesh-host 1.0.0\n" + strings.Repeat("# padding\n", 300))
	from := newPublisher(t).unpacked(t, "1.0.0", binary, nil)
	whole := pack(t, from)
	end := bytes.LastIndex(whole, []byte("# padding\n")) + len("# padding\n")
	l := image(t)
	for cut := 0; cut < end; cut += 509 {
		dir := t.TempDir()
		extract(t, dir, whole[:cut])
		refused(t, l, filepath.Join(dir, filepath.Base(from)), fmt.Sprintf("cut at %d of %d", cut, len(whole)))
	}
	dir := t.TempDir()
	extract(t, dir, whole[:end-1])
	refused(t, l, filepath.Join(dir, filepath.Base(from)), "the last byte is missing")
	extract(t, dir, whole)
	mustInstall(t, l, filepath.Join(dir, filepath.Base(from)))
}

// extract does what a person does; a cut stream makes tar fail, and leaves
// what came before.
func extract(t *testing.T, dir string, stream []byte) {
	t.Helper()
	cmd := exec.Command("tar", "-C", dir, "-xf", "-")
	cmd.Stdin = bytes.NewReader(stream)
	_ = cmd.Run()
}

func TestFlippedByteTouchesNothing(t *testing.T) {
	binary := []byte("#!/bin/sh\necho mesh-host 1.0.0\n")
	from := newPublisher(t).unpacked(t, "1.0.0", binary, nil)
	l := image(t)
	for _, name := range []string{"MANIFEST", "MANIFEST.sigstore.json", "LICENSE", "host.toml", "share/nox-mesh/trust/1.root.json", "mesh-host"} {
		path := filepath.Join(from, name)
		good := read(t, path)
		step := max(1, len(good)/40)
		for i := 0; i < len(good); i += step {
			bad := []byte(good)
			bad[i] ^= 1
			write(t, path, string(bad))
			refused(t, l, from, fmt.Sprintf("%s, byte %d flipped", name, i))
		}
		write(t, path, good+"x")
		refused(t, l, from, name+" with a byte more")
		write(t, path, "")
		refused(t, l, from, name+" empty")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		refused(t, l, from, name+" missing")
		if err := os.Symlink("/etc/passwd", path); err != nil {
			t.Fatal(err)
		}
		refused(t, l, from, name+" a symlink")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o644); err != nil {
			t.Fatal(err)
		}
		refused(t, l, from, name+" a fifo")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		write(t, path, good)
	}
	mustInstall(t, l, from)
}

func TestTarballOfAnotherKindIsRefused(t *testing.T) {
	p, l := newPublisher(t), image(t)
	binary := []byte("#!/bin/sh\necho mesh-host 1.0.0\n")
	for what, change := range map[string]func(map[string]string, *pkgbuild.Manifest){
		"another architecture": func(_ map[string]string, m *pkgbuild.Manifest) { m.Architecture = "riscv64" },
		"no binary":            func(c map[string]string, _ *pkgbuild.Manifest) { delete(c, "mesh-host") },
		"no configuration":     func(c map[string]string, _ *pkgbuild.Manifest) { delete(c, "host.toml") },
		"no release root":      func(c map[string]string, _ *pkgbuild.Manifest) { delete(c, "share/nox-mesh/trust/1.root.json") },
	} {
		refused(t, l, p.unpacked(t, "1.0.0", binary, change), what)
	}
	other := newPublisher(t)
	other.roots = p.roots
	refused(t, l, other.unpacked(t, "1.0.0", binary, nil), "signed by a key that the root does not name")
}

func TestExpectedRoot(t *testing.T) {
	p := newPublisher(t)
	p.rotate(t)
	from := p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for want, kind := range map[string]fault.Kind{
		fingerprint(p.roots[0]):                          0,
		"sha256:" + fingerprint(p.roots[1]):              0,
		strings.ToUpper(fingerprint(p.roots[1])):         0,
		fingerprint([]byte("somebody else")):             fault.Refused,
		"sha256:" + fingerprint([]byte("somebody else")): fault.Refused,
		"sha256:1234":      fault.Usage,
		"one that I trust": fault.Usage,
	} {
		l := image(t)
		before := tree(t, l.Root, false)
		var out bytes.Buffer
		_, err := Install(t.Context(), Options{Layout: l, From: from, ExpectRoot: want, Out: &out})
		if fault.KindOf(err) != kind {
			t.Errorf("%s: %v", want, err)
		}
		if err != nil && before != tree(t, l.Root, false) {
			t.Errorf("%s: touched", want)
		}
		if err == nil && !strings.Contains(out.String(), "2, sha256:"+fingerprint(p.roots[1])) {
			t.Errorf("the fingerprint was not printed: %s", &out)
		}
	}
}

func TestI13UpgradeOverARunningHost(t *testing.T) {
	p, l := newPublisher(t), image(t)
	mustInstall(t, l, p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	running := exec.Command(l.HostBinary("/usr/local"), "run")
	stdin, err := running.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := running.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	up := make([]byte, 3)
	if _, err := stdout.Read(up); err != nil {
		t.Fatal(err)
	}
	s := mustInstall(t, l, p.unpacked(t, "1.1.0", standIn(t, "1.1.0"), nil))
	if !slices.Equal(s.Changed, []string{"/usr/local/bin/mesh-host"}) {
		t.Errorf("changed %v", s.Changed)
	}
	if read(t, l.HostBinary("/usr/local")) != string(standIn(t, "1.1.0")) {
		t.Error("the binary is not the new one")
	}
	if read(t, l.Launcher()) != string(standIn(t, "1.0.0")) {
		t.Error("the launcher copy is not the proven one")
	}
	stdin.Close()
	if err := running.Wait(); err != nil {
		t.Errorf("the running host: %v", err)
	}
}

func TestLaterInstallFollowsTheRootInForce(t *testing.T) {
	p, l := newPublisher(t), image(t)
	binary := standIn(t, "1.0.0")
	mustInstall(t, l, p.unpacked(t, "1.0.0", binary, nil))
	refused(t, l, newPublisher(t).unpacked(t, "1.0.0", binary, nil), "another publisher")
	old := *p
	p.rotate(t)
	if s := mustInstall(t, l, p.unpacked(t, "1.0.0", binary, nil)); s.RootVersion != 2 ||
		!slices.Equal(s.Changed, []string{"/usr/local/share/nox-mesh/trust/2.root.json"}) {
		t.Errorf("after the rotation: %+v", s)
	}
	err := refused(t, l, old.unpacked(t, "1.0.0", binary, nil), "signed by the revoked key")
	if err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("%v", err)
	}
}

func TestAdministratorsTrustCountsOnAFirstInstall(t *testing.T) {
	p, l := newPublisher(t), image(t)
	write(t, filepath.Join(l.AdminTrust(), "1.root.json"), string(newPublisher(t).roots[0]))
	from := p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	refused(t, l, from, "a root other than the administrator's")
	write(t, filepath.Join(l.AdminTrust(), "1.root.json"), string(p.roots[0]))
	if s := mustInstall(t, l, from); s.First {
		t.Error("said to be the first trust")
	}
}

func TestTrustOutlivesTheBinaryAndThePrefix(t *testing.T) {
	p, l := newPublisher(t), image(t)
	binary := standIn(t, "1.0.0")
	mustInstall(t, l, p.unpacked(t, "1.0.0", binary, nil))
	if err := os.Remove(l.HostBinary("/usr/local")); err != nil {
		t.Fatal(err)
	}
	_, err := Install(t.Context(), Options{Layout: l, From: newPublisher(t).unpacked(t, "1.0.0", binary, nil), Prefix: "/opt"})
	if fault.KindOf(err) != fault.Refused {
		t.Errorf("another publisher under another prefix: %v", err)
	}
	if s, err := Install(t.Context(), Options{Layout: l, From: p.unpacked(t, "1.0.0", binary, nil), Prefix: "/opt"}); err != nil || s.First {
		t.Errorf("the same publisher under another prefix: %+v, %v", s, err)
	}
}

func TestConfigurationOfAPersonIsKept(t *testing.T) {
	p, l := newPublisher(t), image(t)
	binary := standIn(t, "1.0.0")
	newer := func(c map[string]string, _ *pkgbuild.Manifest) { c["host.toml"] = "# newer\n" }
	mustInstall(t, l, p.unpacked(t, "1.0.0", binary, nil))
	mustInstall(t, l, p.unpacked(t, "1.0.0", binary, newer))
	if got := read(t, l.HostConfig()); got != "# newer\n" {
		t.Errorf("an unchanged default was not replaced: %q", got)
	}
	write(t, l.HostConfig(), "reconcile_interval = \"1m\"\n")
	s := mustInstall(t, l, p.unpacked(t, "1.0.0", binary, nil))
	if got := read(t, l.HostConfig()); got != "reconcile_interval = \"1m\"\n" || !slices.Equal(s.Kept, []string{"/etc/nox-mesh/host.toml"}) {
		t.Errorf("configuration %q, kept %v", got, s.Kept)
	}
}

func TestDamagedLauncherIsReplaced(t *testing.T) {
	l := image(t)
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	mustInstall(t, l, from)
	write(t, l.Launcher(), "not a program")
	if s := mustInstall(t, l, from); !slices.Equal(s.Changed, []string{pkgbuild.LauncherPath}) {
		t.Errorf("changed %v", s.Changed)
	}
}

func TestBinaryThatDoesNotRunIsNotInstalled(t *testing.T) {
	p, l := newPublisher(t), image(t)
	mustInstall(t, l, p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil))
	for what, binary := range map[string]string{
		"no program":      "\x7fELF nonsense",
		"another version": string(standIn(t, "1.1.0")),
		"fails":           "#!/bin/sh\nexit 7\n",
	} {
		before := tree(t, l.Path("/usr"), true)
		_, err := Install(t.Context(), Options{Layout: l, From: p.unpacked(t, "2.0.0", []byte(binary), nil)})
		if fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %v", what, err)
		}
		if after := tree(t, l.Path("/usr"), true); stripDir(after) != stripDir(before) {
			t.Errorf("%s: left:\n%s", what, diff(before, after))
		}
	}
}

// stripDir leaves out the directories: a trial changes their time.
func stripDir(s string) string {
	var out []string
	for l := range strings.Lines(s) {
		if !strings.Contains(l, " d") {
			out = append(out, l)
		}
	}
	return strings.Join(out, "")
}

func TestPlaces(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	t.Run("a link out of the image is refused", func(t *testing.T) {
		l := image(t)
		if err := os.Symlink(t.TempDir(), l.Path("/etc/nox-mesh")); err != nil {
			t.Fatal(err)
		}
		refused(t, l, from, "/etc/nox-mesh leads out")
	})
	t.Run("a packaged host is left alone", func(t *testing.T) {
		l := image(t)
		write(t, l.Path(packagedUnit), "")
		refused(t, l, from, "packaged")
	})
	t.Run("an empty root is filled", func(t *testing.T) {
		l := layout.Layout{Root: filepath.Join(t.TempDir(), "new", "root")}
		mustInstall(t, l, from)
	})
	t.Run("one prefix at a time", func(t *testing.T) {
		l := image(t)
		mustInstall(t, l, from)
		_, err := Install(t.Context(), Options{Layout: l, From: from, Prefix: "/opt/nox mesh"})
		if fault.KindOf(err) != fault.Refused {
			t.Errorf("%v", err)
		}
	})
	t.Run("a prefix with a space", func(t *testing.T) {
		l := image(t)
		if _, err := Install(t.Context(), Options{Layout: l, From: from, Prefix: "/opt/nox mesh"}); err != nil {
			t.Fatal(err)
		}
		if unit := read(t, l.Path("/etc/systemd/system/mesh-host.service")); !strings.Contains(unit, `launch "/opt/nox mesh/bin/mesh-host"`) {
			t.Error(unit)
		}
	})
	t.Run("a relative prefix", func(t *testing.T) {
		_, err := Install(t.Context(), Options{Layout: image(t), From: from, Prefix: "opt"})
		if fault.KindOf(err) != fault.Usage {
			t.Errorf("%v", err)
		}
	})
	t.Run("what cannot be written is said before anything is", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root may write everywhere")
		}
		l := image(t)
		if err := os.Chmod(l.Path("/usr/local/bin"), 0o555); err != nil {
			t.Fatal(err)
		}
		before := tree(t, l.Root, true)
		_, err := Install(t.Context(), Options{Layout: l, From: from})
		if fault.KindOf(err) != fault.Failed || !errors.Is(err, syscall.EACCES) || before != tree(t, l.Root, true) {
			t.Errorf("%v", err)
		}
	})
}
