package repository

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program is mesh-release, built once.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "oracle")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "mesh-release")
		build := exec.Command("go", "build", "-o", program, "./release/cmd/mesh-release")
		build.Dir = "../../.."
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "cannot build mesh-release: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// need skips the test where a program is missing.
func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not here", p)
		}
	}
}

// A publisher has keys of mesh-release's, which gpg has as well.
type publisher struct {
	t                testing.TB
	top, keys, gnupg string
	secret           string
}

func newPublisher(t testing.TB) *publisher {
	t.Helper()
	need(t, "gpg", "gpgconf", "zstd")
	p := &publisher{t: t, top: t.TempDir()}
	p.keys, p.secret = filepath.Join(p.top, "keys"), filepath.Join(p.top, "secret")
	put(t, p.secret, "correct horse\n")
	p.mesh("keys", "init", "--passphrase-file", p.secret, p.keys)
	// gpg's socket is in its directory, and has 107 bytes.
	gnupg, err := os.MkdirTemp("/tmp", "gpg")
	if err != nil {
		t.Fatal(err)
	}
	p.gnupg = gnupg
	t.Cleanup(func() {
		exec.Command("gpgconf", "--homedir", gnupg, "--kill", "all").Run()
		os.RemoveAll(gnupg)
	})
	p.gpg("--import", filepath.Join(p.keys, "package.secret.asc"))
	return p
}

func (p *publisher) gpg(args ...string) string {
	p.t.Helper()
	return run(p.t, nil, "gpg", append([]string{"--homedir", p.gnupg, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase-file", p.secret}, args...)...)
}

// sign signs a package with gpg.
func (p *publisher) sign(file string) {
	p.t.Helper()
	p.gpg("--yes", "--no-armor", "--detach-sign", file)
}

// mesh runs mesh-release, which must succeed.
func (p *publisher) mesh(args ...string) string {
	p.t.Helper()
	return run(p.t, nil, program, args...)
}

// refused runs mesh-release, which must end with exit code 3.
func (p *publisher) refused(args ...string) string {
	p.t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 3 {
		p.t.Errorf("mesh-release %s: %v, want exit code 3\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// add adds packages to a repository, and returns its directory.
func (p *publisher) add(dir string, args ...string) string {
	p.t.Helper()
	p.mesh(append([]string{"repo", "add", "--keys", p.keys, "--passphrase-file", p.secret, "--md5sum", dir}, args...)...)
	return dir
}

// repoAdd runs the real repo-add or repo-remove on the database of dir. gpg's
// agent knows the passphrase from signing the packages.
func (p *publisher) repoAdd(tool, dir string, args ...string) string {
	p.t.Helper()
	need(p.t, tool, "bsdtar")
	return run(p.t, []string{"GNUPGHOME=" + p.gnupg}, tool, append([]string{"--sign", filepath.Join(dir, "nox-mesh.db.tar.zst")}, args...)...)
}

func run(t testing.TB, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(append(os.Environ(), "LC_ALL=C.UTF-8", "http_proxy=", "no_proxy=*"), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %.400s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// A recipe is a package as it is packed by hand.
type recipe struct {
	name, version, arch string
	info                string // more lines of .PKGINFO
	files               []string
}

// pack packs and signs r in dir.
func (p *publisher) pack(dir string, r recipe) string {
	p.t.Helper()
	if r.arch == "" {
		r.arch = "any"
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(name, content string) {
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg, ModTime: time.Unix(1700000000, 0), Uname: "root", Gname: "root"}
		switch {
		case strings.HasSuffix(name, "/"):
			h.Typeflag, h.Mode, h.Size = tar.TypeDir, 0o755, 0
		case strings.HasSuffix(name, ".link"):
			h.Typeflag, h.Linkname, h.Size, h.Mode = tar.TypeSymlink, "there", 0, 0o777
		}
		if err := w.WriteHeader(h); err != nil {
			p.t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(content)); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	add(".BUILDINFO", "format = 2\n")
	add(".MTREE", "#mtree\n")
	add(".PKGINFO", fmt.Sprintf("# a comment\npkgname = %s\npkgbase = %[1]s-base\nxdata = pkgtype=pkg\npkgver = %s\n"+
		"builddate = 1700000000\npackager = me <me@example.test>\nsize = %d\narch = %s\n%s", r.name, r.version, 9*len(r.files), r.arch, r.info))
	for _, f := range r.files {
		add(f, "content\n")
	}
	if err := w.Close(); err != nil {
		p.t.Fatal(err)
	}
	file := filepath.Join(dir, fmt.Sprintf("%s-%s-%s.pkg.tar.zst", r.name, r.version, r.arch))
	c := exec.Command("zstd", "-q", "-f", "-o", file)
	c.Stdin = &b
	if out, err := c.CombinedOutput(); err != nil {
		p.t.Fatalf("zstd: %v\n%s", err, out)
	}
	p.sign(file)
	return file
}

func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// flip flips a bit in the middle of a file.
func flip(t testing.TB, path string) {
	t.Helper()
	b := get(t, path)
	b[len(b)/2] ^= 1
	if err := os.Remove(path); err != nil { // it may be a link
		t.Fatal(err)
	}
	put(t, path, string(b))
}
