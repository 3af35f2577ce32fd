package arch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// A publisher is the two programs and the keys that one of them makes; gpg signs
// with them, as a publisher's machine may.
type publisher struct {
	t             testing.TB
	dir, gnupg    string
	public, fresh string // what keys export wrote; the key that signs now
}

func newPublisher(t testing.TB) *publisher {
	t.Helper()
	p := &publisher{t: t, dir: t.TempDir(), gnupg: gnupgHome(t)}
	p.public = filepath.Join(p.dir, "public")
	must(t, source(t), append(goEnv(t), "CGO_ENABLED=0"), "go", "build", "-o", p.dir, "./host/cmd/mesh-host", "./release/cmd/mesh-release")
	file(t, filepath.Join(p.dir, "passphrase"), "correct horse")
	p.keys("init", "keys")
	p.changed()
	return p
}

// gnupgHome is a folder for gpg with a short name: its agent's socket is in it.
func gnupgHome(t testing.TB) string {
	t.Helper()
	home, err := os.MkdirTemp("", "nox-gpg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		must(t, "/", nil, "gpgconf", "--homedir", home, "--kill", "all")
		_ = os.RemoveAll(home)
	})
	return home
}

func (p *publisher) keys(args ...string) string {
	p.t.Helper()
	return must(p.t, p.dir, []string{"NOX_PASSPHRASE_FILE=" + filepath.Join(p.dir, "passphrase")}, filepath.Join(p.dir, "mesh-release"), append([]string{"keys"}, args...)...)
}

// changed exports the keys, and gives gpg those that sign.
func (p *publisher) changed() {
	p.t.Helper()
	p.keys("export", "keys", "--out", "public")
	secrets, err := filepath.Glob(filepath.Join(p.dir, "keys/*package.secret.asc"))
	if err != nil || len(secrets) == 0 {
		p.t.Fatal(secrets, err)
	}
	p.gpg(append([]string{"--import"}, secrets...)...)
	p.fresh = regexp.MustCompile(`package key +([0-9a-f]{40})`).FindStringSubmatch(p.keys("show", "keys"))[1]
}

func (p *publisher) gpg(args ...string) {
	p.t.Helper()
	must(p.t, p.dir, nil, "gpg", append([]string{"--homedir", p.gnupg, "--batch", "--yes", "--quiet", "--pinentry-mode", "loopback", "--passphrase-file", "passphrase"}, args...)...)
}

func (p *publisher) sign(key, path string) string {
	p.t.Helper()
	p.gpg("--local-user", key, "--digest-algo", "SHA512", "--output", path+".sig", "--detach-sign", path)
	return path
}

// keyring is the package nox-mesh-keyring of the keys as they are now.
func (p *publisher) keyring(version string) string {
	p.t.Helper()
	return p.sign(p.fresh, pack(p.t, p.t.TempDir(), "keyring", version, p.public))
}

// hello is a package signed by key.
func (p *publisher) hello(version, key string) string {
	p.t.Helper()
	return p.sign(key, packNfpm(p.t, p.t.TempDir(), "name: hello\narch: all\nversion: "+version+"\nmtime: 2023-11-14T22:13:20Z\ncontents:\n- {src: "+
		file(p.t, filepath.Join(p.t.TempDir(), "hello"), version)+", dst: /usr/share/hello}\n"))
}

// host is what mesh-host says of a package by the same keys.
func (p *publisher) host(path string) string {
	out, err := try(p.t, p.dir, nil, filepath.Join(p.dir, "mesh-host"), "--root", filepath.Join(p.dir, "machine"), "verify", "--trust", p.public, path)
	if err == nil {
		return "accepts"
	}
	_, why, _ := strings.Cut(out, filepath.Base(path)+`": `)
	why, _, _ = strings.Cut(why, "\n")
	return "refuses: " + why
}

// populate runs the scriptlet that the installed keyring came with, where
// pacman-key finds the root's keyrings and pacman.conf: it has one place for the
// former in its source (Debian's another than Arch's), and no flag.
func (r *root) populate(pkg string) string {
	r.t.Helper()
	place := regexp.MustCompile(`KEYRING_IMPORT_DIR='([^']+)'`).FindStringSubmatch(read(r.t, "/usr/bin/pacman-key"))
	if place == nil {
		r.t.Fatal("pacman-key does not say where it has keyrings from")
	}
	scriptlet := file(r.t, filepath.Join(r.t.TempDir(), "install"), member(r.t, pkg, ".INSTALL"))
	return must(r.t, "/", nil, "unshare", "--mount", "bash", "-ec",
		`mount --bind "$1" "$2"; mount --bind "$3" /etc/pacman.conf; . "$4"; post_install`, "-",
		r.path("/usr/share/pacman/keyrings"), place[1], r.conf, scriptlet)
}

// TestKeyringPopulatesPacman is the life of the keys on a machine of which
// pacman-key keeps the keyring: who installed nox-mesh-keyring has our packages,
// the next key before it signs, and no more those of a key that was revoked.
func TestKeyringPopulatesPacman(t *testing.T) {
	needs(t, "pacman", "pacman-key", "pacman-conf", "unshare", "gpg", "gpgconf", "bsdtar", "ldd", "go")
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("no mount namespaces here: %v %s", err, out)
	}
	p := newPublisher(t)
	first := p.fresh
	home := gnupgHome(t)
	file(t, filepath.Join(home, "gpg.conf"), "disable-dirmngr\n") // pacman would look for keys it misses
	r := newRoot(t, &signer{t: t, home: home}, "")
	must(t, "/", nil, "pacman-key", "--config", r.conf, "--gpgdir", home, "--init")

	judge := func(name, pkg string, good bool) {
		t.Helper()
		out, err := r.try("-U", pkg)
		theirs, ours := judged(out, err), p.host(pkg)
		tool.Verdict(t, "pacman", "keyring: "+name, theirs, ours)
		if (err == nil) != good || (ours == "accepts") != good {
			t.Errorf("%s: pacman %s, mesh-host %s\n%s", name, theirs, ours, out)
		}
	}
	populated := func(pkg string) {
		t.Helper()
		name := filepath.Base(pkg)
		r.intact("nox-mesh-keyring")
		out := r.populate(pkg)
		if !strings.Contains(out, "Appending keys from nox-mesh.gpg") || strings.Contains(out, "==> ERROR") {
			t.Errorf("the scriptlet of %s: %s", name, out)
		}
		var did []string
		for _, m := range regexp.MustCompile(`-> ((Locally signed|Disabled) [0-9]+ keys)`).FindAllStringSubmatch(out, -1) {
			did = append(did, strings.ToLower(m[1]))
		}
		lines := func(suffix string) int {
			return strings.Count(read(t, r.path("/usr/share/pacman/keyrings/nox-mesh-"+suffix)), "\n")
		}
		tool.Verdict(t, "pacman-key", "--populate, by the scriptlet of "+name, "takes it: "+strings.Join(did, ", "), fmt.Sprintf("%d trusted, %d revoked in it", lines("trusted"), lines("revoked")))
	}

	before := p.hello("1", first)
	out, err := r.try("-U", before)
	if err == nil {
		t.Fatalf("without the keyring pacman takes it:\n%s", out)
	}
	tool.Verdict(t, "pacman", "keyring: our package before it", judged(out, err), p.host(before)+", by the release root")
	// The first time somebody must say so, as with any repository that is added.
	keyring := p.keyring("1.0.0")
	strict := read(t, r.conf)
	file(t, r.conf, strings.ReplaceAll(strict, "LocalFileSigLevel = Required", "LocalFileSigLevel = Never"))
	r.pacman("-U", keyring)
	file(t, r.conf, strict)
	populated(keyring)
	judge("our package", p.hello("2", first), true)

	p.keys("rotate", "keys", "--package")
	p.changed()
	keyring = p.keyring("1.1.0")
	judge("the next keyring, with the next key", keyring, true)
	populated(keyring)
	p.keys("promote", "keys", "--shipped", keyring)
	p.changed()
	if p.fresh == first {
		t.Fatal("the first key signs still")
	}
	judge("by the next key", p.hello("3", p.fresh), true)
	judge("by the first key, which is not revoked", p.hello("4", first), true)

	p.keys("revoke", "keys", first)
	p.changed()
	keyring = p.keyring("1.2.0")
	judge("the keyring that revokes the first key", keyring, true)
	populated(keyring)
	judge("by the first key, in nox-mesh-revoked", p.hello("5", first), false)
	judge("by the next key, after it", p.hello("6", p.fresh), true)
}
