package keys

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func newPackageKey(t *testing.T) *PackageKey {
	t.Helper()
	k, err := NewPackageKey(moment.Add(300 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestPackageSignatureIsOneKnownPacket reads the bytes as RFC 4880 has them.
func TestPackageSignatureIsOneKnownPacket(t *testing.T) {
	k := newPackageKey(t)
	sub := hex.EncodeToString(k.entity.Subkeys[0].PublicKey.Fingerprint)
	for _, c := range []struct{ date, made time.Time }{
		{moment.Add(time.Hour), moment.Add(time.Hour)},
		{moment.Add(time.Hour + 999*time.Millisecond), moment.Add(time.Hour)},
		{moment.Add(-time.Hour), moment},
		{time.Unix(0, 0), moment},
	} {
		sig, err := SignPackage(k, strings.NewReader("a package"), c.date)
		if err != nil {
			t.Fatal(err)
		}
		again, err := SignPackage(k, strings.NewReader("a package"), c.date)
		if err != nil || !bytes.Equal(sig, again) {
			t.Errorf("signed twice, it differs: %v", err)
		}
		// A header with a length of one byte; version 4, class 0, EdDSA,
		// SHA-512; creation time (critical), key id and fingerprint, all
		// signed; nothing beside it.
		want := "^c2(..)0400160a" + "0027" + "0582" + hex.EncodeToString(stamp(c.made)) + "0910" + sub[24:] + "162104" + sub + "0000"
		m := regexp.MustCompile(want).FindStringSubmatch(hex.EncodeToString(sig))
		if m == nil || int(unhex(t, m[1])[0]) != len(sig)-2 {
			t.Errorf("%x\nis not like %s", sig, want)
		}
	}
}

func stamp(t time.Time) []byte {
	s := t.Unix()
	return []byte{byte(s >> 24), byte(s >> 16), byte(s >> 8), byte(s)}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGPGTakesKeysAndSignatures has gpg import the exported keyring and the
// encrypted secret key, and verify what we signed, with no warning but that of
// trust.
func TestGPGTakesKeysAndSignatures(t *testing.T) {
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("gpg is not installed")
	}
	home, err := os.MkdirTemp("", "gpg") // a short path: gpg has sockets in it
	if err != nil {
		t.Fatal(err)
	}
	gpg := func(args ...string) string {
		t.Helper()
		c := exec.Command("gpg", append([]string{"--batch", "--no-autostart", "--status-fd", "1"}, args...)...)
		c.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "HOME=" + home, "GNUPGHOME=" + home}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("gpg %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	dir := initialised(t)
	s, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if _, err := Export(dir, out); err != nil {
		t.Fatal(err)
	}
	primary := strings.ToUpper(s.Package)
	if got := gpg("--import", filepath.Join(out, KeyringGPG)); !strings.Contains(got, "IMPORT_OK 1 "+primary) {
		t.Errorf("import of the keyring:\n%s", got)
	}
	list := gpg("--with-colons", "--list-keys")
	for _, want := range []string{`(?m)^pub:[^:]*:255:22:[^:]*:[0-9]+:::[^:]*:::cSC?:`, `(?m)^sub:[^:]*:255:22:[^:]*:[0-9]+::::::s:`, `(?m)^uid:.*:nox-mesh packages:`} {
		if !regexp.MustCompile(want).MatchString(list) {
			t.Errorf("gpg lists no %s:\n%s", want, list)
		}
	}
	key, err := OpenPackage(dir, given(phrase))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(out, "file")
	put(t, file, []byte("a package"))
	sig, err := SignPackage(key, strings.NewReader("a package"), moment)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file+".sig", sig)
	good := gpg("--verify", file+".sig", file)
	if !regexp.MustCompile(`(?m)VALIDSIG [0-9A-F]{40} 2026-01-02 [0-9]+ 0 4 0 22 10 00 ` + primary + `$`).MatchString(good) {
		t.Errorf("gpg says\n%s", good)
	}
	secretPackets := gpg("--list-packets", filepath.Join(dir, PackageSecret))
	if strings.Count(secretPackets, "iter+salt S2K, algo: 9, SHA1 protection") != 2 {
		t.Errorf("the secret keys are not encrypted as they should:\n%s", secretPackets)
	}
}
