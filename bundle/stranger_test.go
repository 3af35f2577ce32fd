package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// tarOf is a tar of other people, with one file of that name.
func tarOf(t testing.TB, name string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	must[int](t)(w.Write(content))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	must[int](t)(w.Write(b))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A person who gave the wrong file hears which one it is, and which one is wanted.
func TestTheWrongFileIsCalledByItsName(t *testing.T) {
	k := newKey(t)
	policy := trusting(t, k.Public())
	good := bytesOf(t, specOf(3000, k))
	noisy := must[[]byte](t)(io.ReadAll(noise(1, 100_000)))
	iso := make([]byte, 40*2048)
	copy(iso[16*2048+1:], "CD001")
	hybrid := bytes.Clone(iso)
	copy(hybrid, "\x33\xed\x90\x90")
	hybrid[510], hybrid[511] = 0x55, 0xaa
	for _, c := range []struct {
		name         string
		b            []byte
		text, remedy string
	}{
		{"nothing", nil, "truncated (got 0 of 512 bytes at the first header)", "download the file again"},
		{"the tarball of the host", gzipOf(t, tarOf(t, "nox-mesh-host-1.0.0/mesh-host", noisy)), "tarball that installs the host", "bootstrap and apply want the file that ends in .bundle.tar"},
		{"that, uncompressed", tarOf(t, "nox-mesh-host-1.0.0/mesh-host", noisy), "tarball that installs the host", "mesh-host install"},
		{"a bundle in gzip", gzipOf(t, good), "compressed with gzip", "uncompress it with gzip -d"},
		{"a file in gzip", gzipOf(t, noisy), "compressed with gzip", ".bundle.tar"},
		{"gzip that is cut", gzipOf(t, noisy)[:20], "compressed with gzip", ".bundle.tar"},
		{"gzip that is none", []byte("\x1f\x8b garbage"), "compressed with gzip", ".bundle.tar"},
		{"zstd", []byte("\x28\xb5\x2f\xfd\x04\x00"), "compressed with zstd", "zstd -d"},
		{"xz", []byte("\xfd7zXZ\x00\x00\x04"), "compressed with xz", "xz -d"},
		{"zip", []byte("PK\x03\x04\x14\x00"), "zip archive", "unzip it"},
		{"a program", append([]byte("\x7fELF\x02\x01"), noisy...), "it is a program", ".bundle.tar"},
		{"an ISO image", iso, "an ISO image", "mount it"},
		{"an ISO image that boots", hybrid, "an ISO image", "mount it"},
		{"zeros", make([]byte, 1<<20), "begins with 32774 zero bytes", "download"},
		{"an empty archive", make([]byte, 1024), "missing member", "download the file again"},
		{"a page", []byte("<!DOCTYPE html><html><body>404"), "a web page", "download it again"},
		{"a signature", []byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json"}`), "a JSON document", ".bundle.tar"},
		{"a key", []byte("-----BEGIN PUBLIC KEY-----\n"), "a key or a signature", ".bundle.tar"},
		{"a package", tarOf(t, ".PKGINFO", []byte("pkgname = x")), "it is a package", "packages are for pacman"},
		{"an archive of docker", tarOf(t, "manifest.json", []byte("[]")), "archive of container images", ".bundle.tar"},
		{"packed anew", tarOf(t, "./blobs/sha256/x", nil), "not canonical", "packed again by another tar"},
		{"packed anew by another tar", tarOf(t, layoutName, []byte(layoutBytes)), "not canonical", "packed again by another tar"},
		{"sorted by another program", join(madeBlob([]byte("x"))), "unexpected member", "packed again by another tar"},
		{"another tar", tarOf(t, "etc/passwd", nil), "not canonical", "download the file again"},
		{"text", []byte(strings.Repeat("some text\n", 100)), "not canonical", "download the file again"},
		{"noise", noisy, "not canonical", "download the file again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{bytes.NewReader(c.b), io.MultiReader(bytes.NewReader(c.b))} {
				_, err := Read(ctx, r, Options{Policy: policy})
				refused(t, err, c.text)
				remedied(t, err, c.remedy)
			}
		})
	}
	if zstd, err := exec.LookPath("zstd"); err == nil {
		c := exec.Command(zstd, "-c")
		c.Stdin = bytes.NewReader(good)
		_, err := Read(ctx, bytes.NewReader(must[[]byte](t)(c.Output())), Options{Policy: policy})
		refused(t, err, "compressed with zstd")
	}
}

// Each reason of a refusal comes with what to do about it.
func TestEveryRefusalHasARemedy(t *testing.T) {
	k, old := newKey(t), newKey(t)
	h := newHouse(t)
	h.next(nil, old)
	good := bytesOf(t, specOf(3000, k))
	ms := split(t, good)
	flipped := bytes.Clone(good)
	flipped[len(flipped)-3000] ^= 1
	f := forgeryOf(t, specOf(100, k))
	f.index.Annotations[annotationName] = "No Name"
	for _, c := range []struct {
		name string
		b    []byte
		text string
		want string
	}{
		{"bad signature", bytes.Replace(good, []byte(`"sig":"ME`), []byte(`"sig":"MA`), 1), "", "download the file again"},
		{"unknown key", bytesOf(t, specOf(100, newKey(t))), "unknown key", "--trust DIR"},
		{"digest mismatch", flipped, `digest mismatch (member "blobs/sha256/`, "download the file again"},
		{"truncated", good[:len(good)-2000], `("large"))`, "download the file again"},
		{"unexpected member", join(append(ms[:len(ms):len(ms)], madeBlob([]byte("x")))...), "unexpected member", "download the file again"},
		{"duplicate", join(append(ms[:len(ms):len(ms)], ms[len(ms)-1])...), `("large")`, "download the file again"},
		{"packed again", append(bytes.Clone(good), make([]byte, 512)...), "not canonical", "mesh-release bundle import"},
		{"packed again in part", slices.Concat(good[:len(good)-1024], tarOf(t, "./x", nil)), "not canonical", "mesh-release bundle import"},
		{"not canonical", append(bytes.Clone(good), 'x'), "not canonical", "download the file again"},
		{"a damaged header", slices.Concat(good[:len(good)-1024], bytes.Repeat([]byte("x"), 1024)), "not canonical", "download the file again"},
		{"signed and wrong", join(f.members(t)...), "is no name", "ask its publisher"},
	} {
		_, err := Read(ctx, bytes.NewReader(c.b), Options{Policy: trusting(t, k.Public())})
		refused(t, err, c.text)
		remedied(t, err, c.want)
	}
	_, err := Read(ctx, bytes.NewReader(bytesOf(t, specOf(100, old))), Options{Policy: h.policy(1)})
	refused(t, err, "revoked key")
	remedied(t, err, "made since")
}
