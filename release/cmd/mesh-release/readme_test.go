package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
)

// TestTheReadmesRecipeMakesABundle: the recipe and the declaration as they stand
// there, with a file, a package and an image of those names beside them.
func TestTheReadmesRecipeMakesABundle(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```toml\n([^`]*)```\n\n```\n(\\{[^`]*)```\n\n```\n(mesh-release bundle create [^\n]*)").FindAllSubmatch(readme, -1)
	if len(found) != 1 {
		t.Fatalf("%d recipes, want 1", len(found))
	}
	t.Chdir(t.TempDir())
	if _, err := keys.Init("keys", []byte("correct horse"), time.Now()); err != nil {
		t.Fatal(err)
	}
	hello := emptyPackage(t)
	for name, text := range map[string][]byte{
		"bundle.toml": found[0][1], "web.json": found[0][2], "tool": bytes.Repeat([]byte("a tool\n"), 1000),
		"hello.pkg.tar.zst": hello, "hello.pkg.tar.zst.sig": signedPackage(t, hello), "secret": []byte("correct horse\n"),
	} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	imageAt(t, "app")
	command, _, _ := strings.Cut(string(found[0][3]), "#")
	args := append(strings.Fields(command)[1:], "--passphrase-file", "secret")
	var out, errs bytes.Buffer
	std := cli.Stdio{In: strings.NewReader(""), Out: &out, Err: &errs}
	if err := run(t.Context(), args, std); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	if strings.Contains(errs.String(), "note:") {
		t.Errorf("it says %s", errs.String())
	}
	out.Reset()
	if err := run(t.Context(), []string{"bundle", "inspect", "--trust", "keys", "web.bundle.tar"}, std); err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"web.json", "tool", "hello", "hello.sig", "example.test/app:v1, layer 1 of 1"} {
		if !regexp.MustCompile("(?m)^" + regexp.QuoteMeta(title) + "  ").Match(out.Bytes()) {
			t.Errorf("it holds no %q\n%s", title, out.String())
		}
	}
}

// emptyPackage is a package as makepkg writes it, with nothing in it.
func emptyPackage(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	const info = "pkgname = hello\npkgver = 1.0-1\narch = any\n"
	err = w.WriteHeader(&tar.Header{Name: ".PKGINFO", Size: int64(len(info)), Mode: 0o644})
	_, werr := io.WriteString(w, info)
	if err := errors.Join(err, werr, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func signedPackage(t *testing.T, content []byte) []byte {
	t.Helper()
	key, err := keys.OpenPackage("keys", func() ([]byte, error) { return slices.Clone([]byte("correct horse")), nil })
	if err != nil {
		t.Fatal(err)
	}
	sig, err := keys.SignPackage(key, bytes.NewReader(content), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

// imageAt writes an OCI image layout with one image of one layer.
func imageAt(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "blobs/sha256"), 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	blob := func(mediaType, text string) string {
		d := digest.FromString(text)
		put("blobs/sha256/"+d.Encoded(), text)
		return `{"mediaType":"application/vnd.oci.image.` + mediaType + `","digest":"` + d.String() + `","size":` + strconv.Itoa(len(text)) + `}`
	}
	layer := "a layer"
	config := blob("config.v1+json", `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":["`+digest.FromString(layer).String()+`"]}}`)
	manifest := blob("manifest.v1+json", `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":`+config+`,"layers":[`+blob("layer.v1.tar", layer)+`]}`)
	put("index.json", `{"schemaVersion":2,"manifests":[`+manifest+`]}`)
	put("oci-layout", `{"imageLayoutVersion":"1.0.0"}`)
}
