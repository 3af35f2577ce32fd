package floor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

func spec(t *testing.T) Spec {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Spec{
		Version: "1.0.0", Architecture: "x86_64", Time: time.Unix(1700000000, 999),
		Host: []byte("#!/bin/sh\necho host\n"), License: []byte("licence\n"),
		Roots: [][]byte{[]byte("root 1"), []byte("root 2")}, Signer: key,
		Share: map[string][]byte{"man/man8/mesh-host.8": []byte(".TH\n")},
	}
}

func packed(t *testing.T, s Spec) (file string, b []byte) {
	t.Helper()
	dir := t.TempDir()
	if err := Write(dir, s); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "nox-mesh-host-1.0.0-linux-x86_64.tar.gz")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, b
}

func TestTarballFollowsTheRules(t *testing.T) {
	s := spec(t)
	_, b := packed(t, s)
	if !bytes.Equal(b[4:8], []byte{0, 0, 0, 0}) || b[3] != 0 {
		t.Errorf("gzip header % x holds a time or a name", b[:10])
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	r := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		want := int64(0o644)
		if h.Typeflag == tar.TypeDir || strings.HasSuffix(h.Name, "/mesh-host") {
			want = 0o755
		}
		if h.Mode != want || h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || h.Gname != "root" ||
			!h.ModTime.Equal(time.Unix(1700000000, 0)) || h.Format != tar.FormatUSTAR {
			t.Errorf("%+v", h)
		}
	}
	const top = "nox-mesh-host-1.0.0/"
	want := top + " " + strings.Join([]string{
		top + "MANIFEST", top + "MANIFEST.sigstore.json", top + "LICENSE", top + "host.toml", top + "share/",
		top + "share/man/", top + "share/man/man8/", top + "share/man/man8/mesh-host.8", top + "share/nox-mesh/", top + "share/nox-mesh/trust/", top + "share/nox-mesh/trust/1.root.json",
		top + "share/nox-mesh/trust/2.root.json", top + "mesh-host"}, " ")
	if got := strings.Join(names, " "); got != want {
		t.Errorf("members\n%s\nwant\n%s", got, want)
	}
}

func TestSameInputsAreTheSameBytes(t *testing.T) {
	s := spec(t)
	_, first := packed(t, s)
	old := syscall.Umask(0o077)
	s.Time = s.Time.In(time.FixedZone("far", 9*3600))
	file, second := packed(t, s)
	syscall.Umask(old)
	if !bytes.Equal(first, second) {
		t.Error("another umask and time zone give other bytes")
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}

// TestExtractedAnywhere unpacks as a person does, under several umasks, into a
// directory that keeps its mode.
func TestExtractedAnywhere(t *testing.T) {
	program, err := exec.LookPath("tar")
	if err != nil {
		t.Skip("tar is not here")
	}
	s := spec(t)
	file, _ := packed(t, s)
	for _, mask := range []int{0o000, 0o022, 0o077} {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		old := syscall.Umask(mask)
		out, err := exec.Command(program, "-xzf", file, "-C", dir).CombinedOutput()
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("umask %03o: the directory has mode %v now, %v", mask, fi.Mode(), err)
		}
		top := filepath.Join(dir, "nox-mesh-host-1.0.0")
		text, err := os.ReadFile(filepath.Join(top, pkgbuild.ManifestName))
		if err != nil {
			t.Fatal(err)
		}
		m, err := pkgbuild.ParseManifest(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.Members {
			fi, err := os.Lstat(filepath.Join(top, f.Path))
			if err != nil || fi.Size() != f.Size {
				t.Errorf("umask %03o: %s: %v", mask, f.Path, err)
			}
			// tar(1) heeds the umask of an ordinary user only.
			if os.Geteuid() == 0 && fi.Mode().Perm() != fs.FileMode(f.Mode) {
				t.Errorf("umask %03o: %s has mode %v", mask, f.Path, fi.Mode())
			}
		}
	}
}

func TestManifestIsSigned(t *testing.T) {
	s := spec(t)
	pub := filepath.Join(t.TempDir(), "k.pub")
	key, err := trust.NewKey(s.Signer.Public(), trust.ScopeRelease)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pub, []byte(key.Public), 0o600); err != nil {
		t.Fatal(err)
	}
	policy, err := trust.LoadKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	_, b := packed(t, s)
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if name := filepath.Base(h.Name); strings.HasPrefix(name, "MANIFEST") {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := trust.VerifyFile(filepath.Join(dir, "MANIFEST"), policy); err != nil {
		t.Error(err)
	}
}

// TestReadingBackFindsADamagedTarball: the check that stands before the final
// name must be one that can fail.
func TestReadingBackFindsADamagedTarball(t *testing.T) {
	s := spec(t)
	_, good := packed(t, s)
	const top = "nox-mesh-host-1.0.0"
	if err := check(good, top); err != nil {
		t.Fatal(err)
	}
	if err := check(good, "another"); err == nil {
		t.Error("another top folder was accepted")
	}
	for n := range len(good) {
		if check(good[:n], top) == nil {
			t.Errorf("cut at %d of %d: accepted", n, len(good))
		}
	}
	if check(append(bytes.Clone(good), 0), top) == nil || check(append(bytes.Clone(good), good...), top) == nil {
		t.Error("bytes after the end were accepted")
	}
}

func TestNothingIsLeftWhenPackingFails(t *testing.T) {
	s := spec(t)
	for what, change := range map[string]func(*Spec){
		"version":      func(s *Spec) { s.Version = "../1" },
		"architecture": func(s *Spec) { s.Architecture = "x/y" },
	} {
		bad := s
		change(&bad)
		dir := t.TempDir()
		if err := Write(dir, bad); err == nil {
			t.Errorf("%s: accepted", what)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", what, left, err)
		}
	}
	if err := Write(filepath.Join(t.TempDir(), "none"), s); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}
