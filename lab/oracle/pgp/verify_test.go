package pgp

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A bench is the two programs, keys that one made, and a gpg that has them.
type bench struct {
	t   *testing.T
	dir string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("gpg is not installed")
	}
	// A short path: gpg has sockets below it.
	dir, err := os.MkdirTemp("", "pgp")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t, dir}
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", b.path("gpg"), "--kill", "all").Run()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	build := exec.Command("go", "build", "-o", dir, "./host/cmd/mesh-host", "./release/cmd/mesh-release")
	build.Dir = "../../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Mkdir(b.path("gpg"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.put("passphrase", []byte("correct horse"))
	b.release("keys", "init", "keys")
	b.release("keys", "export", "keys", "--out", "public")
	b.gpg("--import", "keys/package.secret.asc")
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) put(name string, content []byte) {
	b.t.Helper()
	if err := os.WriteFile(b.path(name), content, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(name string) []byte {
	b.t.Helper()
	content, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return content
}

// run runs a program in the bench's folder and returns what it printed and its
// exit status.
func (b *bench) run(program string, args ...string) (string, int) {
	b.t.Helper()
	c := exec.Command(program, args...)
	c.Dir = b.dir
	c.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "GNUPGHOME=" + b.path("gpg"), "NOX_PASSPHRASE_FILE=" + b.path("passphrase")}
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

func (b *bench) release(args ...string) string {
	b.t.Helper()
	out, code := b.run(b.path("mesh-release"), args...)
	if code != 0 {
		b.t.Fatalf("mesh-release %s: exit %d\n%s", args, code, out)
	}
	return out
}

func (b *bench) gpg(args ...string) {
	b.t.Helper()
	all := append([]string{"--batch", "--yes", "--pinentry-mode", "loopback", "--passphrase-file", "passphrase"}, args...)
	if out, code := b.run("gpg", all...); code != 0 {
		b.t.Fatalf("gpg %s: exit %d\n%s", args, code, out)
	}
}

// signed has gpg sign a file with the package key.
func (b *bench) signed(file string, how ...string) []byte {
	b.t.Helper()
	b.gpg(append(append([]string{"--digest-algo", "SHA512"}, how...), "--output", "made.sig", "--detach-sign", file)...)
	return b.get("made.sig")
}

// verdict puts what gpg and mesh-host say of the package as it lies there into
// the table that lab/testreport prints.
func (b *bench) verdict(name string) {
	b.t.Helper()
	theirs, ours := "accepts", "accepts"
	out, code := b.run("gpg", "--batch", "--status-fd", "1", "--verify", pkg+".sig", pkg)
	if code != 0 {
		theirs = "refuses"
		// The most telling of its status lines, doc/DETAILS of GnuPG.
		if word := regexp.MustCompile(`GNUPG:\] (BADSIG|NO_PUBKEY|REVKEYSIG|ERRSIG|NODATA|UNEXPECTED|FAILURE)`).FindStringSubmatch(out); word != nil {
			theirs += ": " + word[1]
		}
	}
	if out, code = b.verify(); code != 0 {
		out = strings.TrimSpace(out)
		if at := strings.LastIndex(out, pkg+`": `); at >= 0 {
			out = out[at+len(pkg+`": `):]
		}
		out, _, _ = strings.Cut(out, "\n")
		ours = fmt.Sprintf("exit %d: %s", code, out)
	}
	version, _ := b.run("gpg", "--version")
	version, _, _ = strings.Cut(version, "\n")
	version = version[strings.LastIndex(version, " ")+1:]
	b.t.Attr("verdict", "gpg "+version+" | mesh-host verify: "+name+" | "+theirs+" | "+ours)
}

const pkg = "hello-1-1-any.pkg.tar.zst"

func (b *bench) verify() (string, int) {
	b.t.Helper()
	return b.run(b.path("mesh-host"), "--root", b.path("machine"), "verify", "--trust", b.path("public"), pkg)
}

// TestVerifyOfAPackage: mesh-host says who signed a package, or why it does not
// count and exits 3.
func TestVerifyOfAPackage(t *testing.T) {
	b := newBench(t)
	b.put(pkg, []byte("what pacman would unpack"))
	b.put("another", []byte("another file"))
	good := b.signed(pkg)
	key := regexp.MustCompile(`package key +([0-9a-f]{40})`).FindStringSubmatch(b.release("keys", "show", "keys"))
	if key == nil {
		t.Fatal("mesh-release names no package key")
	}

	b.put(pkg+".sig", good)
	b.verdict("good")
	if out, code := b.verify(); code != 0 || !strings.Contains(out, key[1][:12]) || !strings.Contains(out, "release root 1") {
		t.Errorf("good: exit %d\n%s", code, out)
	}
	if out, code := b.run(b.path("mesh-host"), "--root", b.path("machine"), "verify", "--json", "--trust", b.path("public"), pkg); code != 0 || !strings.Contains(out, `"key": "`+key[1]+`"`) {
		t.Errorf("good, as JSON: exit %d\n%s", code, out)
	}
	for _, c := range []struct {
		name, why string
		sig       []byte
	}{
		{"armored", "armored signature", b.signed(pkg, "--armor")},
		{"SHA-1", "signature over a hash that does not count", b.signed(pkg, "--digest-algo", "SHA1")},
		{"future", "signature from the future", b.signed(pkg, "--faked-system-time", "20990101T000000")},
		{"two", "more than one signature", append(bytes.Clone(good), good...)},
		{"trailing", "trailing bytes after the signature", append(bytes.Clone(good), "\xa8\x03PGP"...)},
		{"text mode", "signature of the wrong class", b.signed(pkg, "--textmode")},
		{"another file's", "bad signature", b.signed("another")},
		{"empty", "no signature", []byte{}},
	} {
		b.put(pkg+".sig", c.sig)
		b.verdict(c.name)
		if out, code := b.verify(); code != 3 || !strings.Contains(out, c.why) {
			t.Errorf("%s: exit %d\n%s", c.name, code, out)
		}
	}
	if err := os.Remove(b.path(pkg + ".sig")); err != nil {
		t.Fatal(err)
	}
	b.verdict("no signature file")
	if out, code := b.verify(); code != 3 || !strings.Contains(out, `no signature, there is no "`+pkg+`.sig"`) {
		t.Errorf("unsigned: exit %d\n%s", code, out)
	}

	b.put(pkg+".sig", good)
	b.release("keys", "rotate", "keys", "--package")
	b.release("keys", "promote", "keys", "--unshipped")
	b.release("keys", "export", "keys", "--out", "public")
	if out, code := b.verify(); code != 0 || !strings.Contains(out, "release root 2") {
		t.Errorf("after the rotation: exit %d\n%s", code, out)
	}
	b.release("keys", "revoke", "keys", key[1])
	b.release("keys", "export", "keys", "--out", "public")
	b.verdict("by a key that a later release root revoked")
	if out, code := b.verify(); code != 3 || !strings.Contains(out, "revoked key") {
		t.Errorf("after the revocation: exit %d\n%s", code, out)
	}
}
