package publisher

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestKeys spoils the directory of keys in every way; nothing is ever built.
func TestKeys(t *testing.T) {
	d := newDesk(t)
	sign := []string{"sign", "--keys", "keys", "src/LICENSE"}
	full := build("o", one)
	without := func(name string) func() {
		return func() { must(t, os.Remove(d.path("keys/"+name))) }
	}
	instead := func(name, text string) func() {
		return func() { d.put("keys/"+name, text) }
	}
	directory := func(name string) func() {
		return func() { without(name)(); must(t, os.Mkdir(d.path("keys/"+name), 0o700)) }
	}
	pipe := func(name string) func() {
		return func() { without(name)(); must(t, syscall.Mkfifo(d.path("keys/"+name), 0o600)) }
	}
	mode := func(name string, m os.FileMode) func() {
		return func() { must(t, os.Chmod(d.path(name), m)) }
	}
	// Another publisher's keys: none of them is in this one's root.
	d.ok("keys", "init", "others")
	others := d.tree("others")
	good := d.tree("keys")
	for _, c := range []struct {
		name  string
		args  []string
		spoil func()
		code  int
		says  string
	}{
		{"no root", sign, without("1.root.json"), 1, `there is no "1.root.json" in "keys"; restore it: each tarball has it`},
		{"no release key", sign, without("release.key"), 1, `"keys/release.key" is not there; restore it, or make another with "mesh-release keys rotate keys --release"`},
		{"no package key", full, without("package.secret.asc"), 1, `"keys/package.secret.asc" is not there; restore it, or make another with "mesh-release keys rotate keys --package"`},
		{"no root key", []string{"keys", "rotate", "keys", "--release"}, without("root.key"), 1, `"keys/root.key" is not there; bring it from where it is kept offline`},
		{"empty root", sign, instead("1.root.json", ""), 3, "cannot read the release root"},
		{"empty release key", sign, instead("release.key", ""), 3, "is not an encrypted sigstore key; "},
		{"empty package key", full, instead("package.secret.asc", ""), 3, "is not an encrypted OpenPGP key"},
		{"a directory for the root", sign, directory("1.root.json"), 1, `"keys/1.root.json" is not a regular file`},
		{"a directory for the release key", sign, directory("release.key"), 1, `"keys/release.key" is not a regular file`},
		{"a directory for the package key", full, directory("package.secret.asc"), 1, `"keys/package.secret.asc" is not a regular file`},
		{"a pipe for the root", sign, pipe("1.root.json"), 1, `"keys/1.root.json" is not a regular file`},
		{"a pipe for the release key", sign, pipe("release.key"), 1, `"keys/release.key" is not a regular file`},
		{"a pipe for the package key", full, pipe("package.secret.asc"), 1, `"keys/package.secret.asc" is not a regular file`},
		{"another's release key", sign, instead("release.key", others["release.key"]), 3, "release root 1 names key"},
		{"another's package key", full, instead("package.secret.asc", others["package.secret.asc"]), 3, "release root 1 names key"},
		{"another's root", sign, instead("1.root.json", others["1.root.json"]), 3, "release root 1 names key"},
		{"keys that others may write", sign, mode("keys", 0o777), 3, "can be written by others; look at what it holds"},
		{"a root that others may write", sign, mode("keys/1.root.json", 0o666), 3, "can be written by others; look at what it holds"},
	} {
		c.spoil()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		d.fault(c.name, d.command(ctx, shared.program, c.args...), c.code, c.says)
		stop()
		must(t, os.RemoveAll(d.path("keys")))
		must(t, os.Mkdir(d.path("keys"), 0o700))
		for name, text := range good {
			d.put("keys/"+name, text)
		}
	}
	d.fault("no --keys", d.mesh("build", "--source", "src", "--version", one, "--counter", "1", "--out", "o"), 2, "; give --keys DIR")
	d.fault("a file", d.mesh("sign", "--keys", "secret", "src/LICENSE"), 1, "not a directory")
	d.fault("nothing", d.mesh("sign", "--keys", "none", "src/LICENSE"), 1, `make keys with "mesh-release keys init none"`)
	for _, name := range []string{"o", "src/LICENSE.sigstore.json"} {
		if _, err := os.Lstat(d.path(name)); err == nil {
			t.Errorf("%q was made", name)
		}
	}
}

// TestPublicHalvesAreForOthers: a build needs the root and two secret keys, and
// gives the same bytes without the rest; keys that others may read are encrypted.
func TestPublicHalvesAreForOthers(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"root.key", "release.pub", "package.pub.asc"} {
		must(t, os.Remove(d.path("keys/"+name)))
	}
	must(t, os.Chmod(d.path("keys"), 0o755))
	must(t, os.Chmod(d.path("keys/release.key"), 0o644))
	d.ok(build("o", one)...)
	if got := d.holds("public halves", "o"); got != one {
		t.Errorf("it holds %q", got)
	}
}

// TestPassphrase: one line break at the end is not part of it; anything else is.
func TestPassphrase(t *testing.T) {
	d := newDesk(t)
	sign := func() result {
		return d.mesh("sign", "--keys", "keys", "--passphrase-file", "given", "src/LICENSE")
	}
	for name, text := range map[string]string{"LF": "\n", "CRLF": "\r\n", "none": ""} {
		d.put("given", passphrase+text)
		if r := sign(); r.code != 0 {
			t.Errorf("line break %s: %+v", name, r)
		}
	}
	must(t, os.Remove(d.path("src/LICENSE.sigstore.json")))
	for _, c := range []struct {
		name, text string
		code       int
		says       string
	}{
		{"empty", "", 2, `"given" is empty; put the passphrase into its first line`},
		{"a line break", "\n", 2, "is empty; "},
		{"CRLF", "\r\n", 2, "is empty; "},
		{"wrong", "incorrect", 3, `"keys/release.key": wrong passphrase, or the file is damaged; give the passphrase`},
		{"two line breaks", passphrase + "\n\n", 3, "wrong passphrase"},
		{"two lines", passphrase + "\nmore\n", 3, "wrong passphrase"},
		{"a blank before", " " + passphrase, 3, "wrong passphrase"},
		{"a byte order mark", "\ufeff" + passphrase, 3, "wrong passphrase"},
		{"too much", string(make([]byte, 1<<17)), 1, "has more than"},
	} {
		d.put("given", c.text)
		d.fault(c.name, sign(), c.code, c.says)
	}
	must(t, os.Remove(d.path("given")))
	d.fault("no file", sign(), 1, "; give --passphrase-file FILE")
	must(t, os.Mkdir(d.path("given"), 0o700))
	d.fault("a directory", sign(), 1, "is a directory; give a file that holds the passphrase alone")
	// The package key under another passphrase than the release key.
	d.put("other", "battery staple")
	d.ok("keys", "init", "others", "--passphrase-file", "other")
	d.put("keys/package.secret.asc", d.tree("others")["package.secret.asc"])
	d.fault("of the package key", d.mesh(build("o", one)...), 3, `"keys/package.secret.asc": wrong passphrase, or the file is damaged; give the passphrase`)
	if _, err := os.Lstat(d.path("src/LICENSE.sigstore.json")); err == nil {
		t.Error("something was signed")
	}
	if d.holds("passphrases", "o") != "" {
		t.Error("something was built")
	}
}
