package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/bundle/seed"
)

func listOf(t *testing.T, s *site) *seed.List {
	t.Helper()
	list, _ := s.List("x86_64")
	l, err := seed.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAWayIsWhatAPersonTypes(t *testing.T) {
	s := newSite(t, usual)
	s.sow(s.release("x86_64", 7))
	w := WayBy(listOf(t, s), []string{"[2001:db8::1]:7480", "192.0.2.1:7480"})
	const (
		key     = "ABABABABABABABABABABABABABABABABABABABAB"
		tarball = "dfde7373b2270b496e9398674c754f962d27df5a8b3553841225077966d920aa" // as sha256sum(1) has it
		keyring = "61ec6c42f1836e6748252c831ca066964066bccc0b819f7cc9f51afab71dc9a9"
	)
	for got, want := range map[string]string{
		w.Floor.URL:          "http://[2001:db8::1]:7480/floor/nox-mesh-host-1.0.7-linux-x86_64.tar.gz",
		w.Pacman.Keyring.URL: "http://[2001:db8::1]:7480/arch/x86_64/nox-mesh.gpg",
		w.Pacman.Fingerprint: key,
		w.Floor.Command: "curl -fsSL -o nox-mesh-host-1.0.7-linux-x86_64.tar.gz 'http://[2001:db8::1]:7480/floor/nox-mesh-host-1.0.7-linux-x86_64.tar.gz'" +
			" && echo '" + tarball + "  nox-mesh-host-1.0.7-linux-x86_64.tar.gz' | sha256sum -c && tar -xzf nox-mesh-host-1.0.7-linux-x86_64.tar.gz" +
			" && sudo ./nox-mesh-host-1.0.7/mesh-host install",
		w.Pacman.Trust: "curl -fsSL -o nox-mesh.gpg 'http://[2001:db8::1]:7480/arch/x86_64/nox-mesh.gpg' && echo '" + keyring +
			"  nox-mesh.gpg' | sha256sum -c && sudo pacman-key --add nox-mesh.gpg && sudo pacman-key --lsign-key " + key,
		strings.Join(w.Pacman.Lines, "\n"): "[nox-mesh]\nSigLevel = Required DatabaseRequired\nServer = http://[2001:db8::1]:7480/arch/$arch",
	} {
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	if strings.Join(w.Others, " ") != "192.0.2.1:7480" {
		t.Errorf("others %q", w.Others)
	}
}

// TestI14NothingRunsOfWhatIsNotTheOne: the command as it is printed, by a real
// shell and curl; the host of the tarball leaves a mark.
func TestI14NothingRunsOfWhatIsNotTheOne(t *testing.T) {
	for _, program := range []string{"bash", "curl", "tar", "sha256sum"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not here", program)
		}
	}
	for what, changed := range map[string]bool{"the one": false, "a byte is another": true} {
		t.Run(what, func(t *testing.T) {
			s := newSite(t, usual)
			r := s.release("x86_64", 7)
			const tarball = "floor/nox-mesh-host-1.0.7-linux-x86_64.tar.gz"
			r.Files[tarball] = packed(t)
			if err := r.Sign(); err != nil {
				t.Fatal(err)
			}
			s.sow(r)
			s.serve()
			s.wants("a seed", "1.0.7 x86_64 seed")
			w := WayBy(listOf(t, s), []string{s.address})
			if changed {
				b := []byte(r.Files[tarball])
				b[len(b)-1] ^= 1 // gzip(1) would not say so before tar has unpacked all
				r.Files[tarball] = string(b)
				if err := r.Sign(); err != nil {
					t.Fatal(err)
				}
				s.sow(r)
				s.Serves()
			}
			dir, bin := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			c := exec.Command("bash", "-c", w.Floor.Command)
			c.Dir, c.Env = dir, []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"}
			out, err := c.CombinedOutput()
			_, ran := os.Stat(filepath.Join(dir, "ran"))
			_, unpacked := os.Stat(filepath.Join(dir, "nox-mesh-host-1.0.7"))
			if changed && (err == nil || ran == nil || unpacked == nil || !strings.Contains(string(out), "FAILED")) || !changed && (err != nil || ran != nil) {
				t.Errorf("%v, ran %v\n%s", err, ran == nil, out)
			}
		})
	}
}

// packed is a tarball with a host that leaves a mark.
func packed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "nox-mesh-host-1.0.7"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "nox-mesh-host-1.0.7/mesh-host"), []byte("#!/bin/sh\ntest \"$1\" = install && touch ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tar", "-C", dir, "-czf", "-", "nox-mesh-host-1.0.7").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
