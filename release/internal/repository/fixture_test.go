package repository

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/klauspost/compress/zstd"
)

// A publisher signs and verifies with one OpenPGP key.
type publisher struct{ entity *openpgp.Entity }

func newPublisher(t testing.TB) publisher {
	t.Helper()
	e, err := openpgp.NewEntity("test", "", "", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	return publisher{e}
}

func (p publisher) Sign(message io.Reader, date time.Time) ([]byte, error) {
	no := false
	var b bytes.Buffer
	err := openpgp.DetachSign(&b, p.entity, message, &packet.Config{NonDeterministicSignaturesViaNotation: &no})
	return b.Bytes(), err
}

func (p publisher) Verify(message io.Reader, signature []byte) error {
	_, err := openpgp.CheckDetachedSignature(openpgp.EntityList{p.entity}, message, bytes.NewReader(signature), nil)
	return err
}

func (p publisher) options() Options { return Options{Signer: p, Verifier: p} }

// pack writes a signed package into dir; content makes its bytes different.
func (p publisher) pack(t testing.TB, dir, name, version, arch, content string) string {
	t.Helper()
	file := filepath.Join(dir, fmt.Sprintf("%s-%s-%s.pkg.tar.zst", name, version, arch))
	put(t, file, packageBytes(t, name, version, arch, content))
	p.sign(t, file)
	return file
}

func (p publisher) sign(t testing.TB, file string) {
	t.Helper()
	sig, err := p.Sign(bytes.NewReader(get(t, file)), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, file+".sig", sig)
}

func packageBytes(t testing.TB, name, version, arch, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	add := func(name, content string) {
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(name, "/") {
			h.Mode, h.Typeflag = 0o755, tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	add(".BUILDINFO", "format = 2\n")
	add(".MTREE", "#mtree\n")
	add(".PKGINFO", fmt.Sprintf("pkgname = %s\npkgbase = %[1]s\nxdata = pkgtype=pkg\npkgver = %s\npkgdesc = a test\nurl = http://example.test\n"+
		"builddate = 1700000000\npackager = me <me@example.test>\nsize = %d\narch = %s\nlicense = MIT\n", name, version, len(content), arch))
	add("usr/", "")
	add("usr/"+name, content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func put(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
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

// names returns what is in a directory, but the databases' second names.
func names(t testing.TB, dir string) string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		if n := e.Name(); !strings.Contains(n, ".sig") && !strings.HasPrefix(n, Name+".") {
			out = append(out, strings.TrimSuffix(n, ".pkg.tar.zst"))
		}
	}
	return strings.Join(out, " ")
}
