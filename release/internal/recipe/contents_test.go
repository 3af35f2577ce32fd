package recipe

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const fullRecipe = `
name = "site"
version = "1.0.0"
architecture = "x86_64"
declarations = ["site.json"]
[[package]]
title = "htop"
path = "htop.pkg.tar.zst"
[[image]]
title = "web"
from = "docker-archive:web.tar"
`

const fullDeclaration = `{"schema": 1, "name": "site", "generation": "counter", "resources": [
  {"id": "p", "type": "package", "name": "htop", "source": "package:htop", "signature": "package:htop"},
  {"id": "c", "type": "container", "name": "web", "image": "image:web"}
]}`

// packageFor is a package as makepkg writes it, as far as anybody looks here.
func packageFor(architecture string) string {
	info := "pkgname = htop\npkgver = 3.3.0-1\narch = " + architecture + "\n"
	var out bytes.Buffer
	z, _ := zstd.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, m := range [][2]string{{".BUILDINFO", "x"}, {".PKGINFO", info}} {
		w.WriteHeader(&tar.Header{Name: m[0], Size: int64(len(m[1])), Mode: 0o644})
		io.WriteString(w, m[1])
	}
	w.Close()
	z.Close()
	return out.String()
}

// imageFor is what "docker save" writes for an image with one layer.
func imageFor(architecture, layer string) string {
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux","rootfs":{"type":"layers","diff_ids":[%q]}}`, architecture, digest.FromString(layer))
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range [][2]string{{"c", config}, {"l", layer}, {"manifest.json", `[{"Config":"c","Layers":["l"]}]`}} {
		w.WriteHeader(&tar.Header{Name: m[0], Size: int64(len(m[1])), Mode: 0o644})
		io.WriteString(w, m[1])
	}
	w.Close()
	return out.String()
}

// full is a recipe with a package and an image. Of signatures only the first bit
// is looked at here.
func full() map[string]string {
	return map[string]string{
		"bundle.toml": fullRecipe, "site.json": fullDeclaration,
		"htop.pkg.tar.zst": packageFor("x86_64"), "htop.pkg.tar.zst.sig": "\x88signature",
		"web.tar": imageFor("amd64", "a layer"),
	}
}

func specOf(t *testing.T, files map[string]string, g Given) (bundle.Spec, error) {
	t.Helper()
	r, err := Read(folder(t, files))
	if err != nil {
		return bundle.Spec{}, err
	}
	if err := r.Fill(g); err != nil {
		return bundle.Spec{}, err
	}
	return r.Spec(t.Context(), Making{Counter: 7})
}

func TestPackagesAndImagesAreNamedByTitle(t *testing.T) {
	s, err := specOf(t, full(), Given{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := declaration.Parse(s.Declarations[0].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	p, c := d.Resources[0].Package, d.Resources[1].Container
	if p.Source != digest.FromString(full()["htop.pkg.tar.zst"]) || p.Signature != digest.FromString("\x88signature") {
		t.Errorf("%+v", p)
	}
	if len(s.Images) != 1 || c.Image != digest.FromBytes(s.Images[0].Manifest).String() {
		t.Fatalf("%+v %+v", c, s.Images)
	}
	var got []string
	for _, b := range s.Payload {
		got = append(got, b.Title+" "+b.MediaType)
	}
	if want := "[htop " + bundle.MediaTypePackageArch + " htop.sig " + bundle.MediaTypePackageArchSignature + "]"; fmt.Sprint(got) != want {
		t.Errorf("payload %q", got)
	}
	if i := s.Images[0]; i.Title != "web" || i.MediaType != "application/vnd.oci.image.manifest.v1+json" {
		t.Errorf("%+v", i)
	}
	r, err := s.Images[0].Open(v1.Descriptor{Digest: digest.FromString("a layer"), Size: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); err != nil || string(b) != "a layer" {
		t.Errorf("%q %v", b, err)
	}
	if _, err := bundle.Preview(s); err != nil {
		t.Error(err)
	}
}

func TestWhatIsGivenTakesThePlaceOfTheRecipe(t *testing.T) {
	files := full()
	dir := t.TempDir()
	for name, text := range map[string]string{"p": packageFor("any"), "p.sig": "\x90", "i": imageFor("amd64", "another layer")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files["bundle.toml"] = strings.Replace(fullRecipe, `path = "htop.pkg.tar.zst"`, `signature = "gone.sig"`, 1)
	s, err := specOf(t, files, Given{
		Packages: map[string]string{"htop": filepath.Join(dir, "p")},
		Images:   map[string]string{"web": "docker-archive:" + filepath.Join(dir, "i")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Payload[0].Digest != digest.FromString(packageFor("any")) || s.Payload[1].Digest != digest.FromString("\x90") {
		t.Errorf("%+v", s.Payload)
	}
	if !strings.Contains(string(s.Images[0].Manifest), digest.FromString("another layer").String()) {
		t.Errorf("%s", s.Images[0].Manifest)
	}
	_, err = specOf(t, full(), Given{Images: map[string]string{"web": "web.tar"}})
	if fault.KindOf(err) != fault.Usage || !strings.Contains(fault.RemedyOf(err), "--image web=REF") {
		t.Errorf("%v", err)
	}
}

func TestContentsThatMakeNoBundle(t *testing.T) {
	for _, c := range []struct {
		name, file, text, want string
	}{
		{"a package for another machine", "htop.pkg.tar.zst", packageFor("aarch64"), `is a package for "aarch64", the bundle is for x86_64`},
		{"a package for no machine", "htop.pkg.tar.zst", strings.Replace(packageFor("x86_64"), "x", "x", 1)[:20], "is no package of pacman"},
		{"a package that is none", "htop.pkg.tar.zst", "#!/bin/sh", "is no package of pacman"},
		{"a signature in letters", "htop.pkg.tar.zst.sig", "-----BEGIN PGP SIGNATURE-----", "is no binary OpenPGP signature"},
		{"an empty signature", "htop.pkg.tar.zst.sig", "", "is no binary OpenPGP signature"},
		{"a large signature", "htop.pkg.tar.zst.sig", strings.Repeat("\x88", 5000), "more than 4096 bytes"},
		{"an image for another machine", "web.tar", imageFor("arm64", "a layer"), `image "web": cannot read image "docker-archive:`},
		{"no signature said", "site.json", strings.Replace(fullDeclaration, `, "signature": "package:htop"`, "", 1), "no declaration needs the signature of package \"htop\""},
		{"a package where an image belongs", "site.json", strings.Replace(fullDeclaration, "image:web", "package:htop", 1), "no place for the digest of a package"},
		{"an image nobody needs", "site.json", strings.Replace(fullDeclaration, "image:web", "docker.io/library/web@"+string(digest.FromString("x")), 1), `no declaration needs the image "web"`},
		{"a package nobody needs", "site.json", strings.Replace(fullDeclaration, `, "source": "package:htop", "signature": "package:htop"`, "", 1), `no declaration needs the package "htop"`},
		{"an image that is not there", "site.json", strings.Replace(fullDeclaration, "image:web", string(digest.FromString("x")), 1), "is no image of the recipe"},
		{"a blob where an image belongs", "site.json", strings.Replace(fullDeclaration, "image:web", string(digest.FromString("\x88signature")), 1), "is no image of the recipe"},
		{"another's signature", "bundle.toml", fullRecipe + "[[package]]\ntitle = \"other\"\npath = \"htop.pkg.tar.zst\"\nsignature = \"bundle.toml\"\n", "is no binary OpenPGP signature"},
		{"an image without a place", "bundle.toml", strings.Replace(fullRecipe, "from", "#", 1), "no place for image"},
		{"an image in no known place", "bundle.toml", strings.Replace(fullRecipe, "docker-archive:", "rar:", 1), `"rar:" is not read here`},
		{"an image under a name that is none", "bundle.toml", strings.Replace(fullRecipe, `title = "web"`, `title = "bundle"`, 1), "is no title of an image"},
		{"a title twice", "bundle.toml", fullRecipe + "[[file]]\ntitle = \"htop.sig\"\npath = \"web.tar\"\n", `the title "htop.sig" is there twice`},
		{"one image twice", "bundle.toml", fullRecipe + "[[image]]\ntitle = \"again\"\nfrom = \"docker-archive:web.tar\"\n", `it is the image "web"`},
		{"a key of an image that is not known", "bundle.toml", fullRecipe + "tag = \"v1\"\n", "is not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := full()
			files[c.file] = c.text
			_, err := specOf(t, files, Given{})
			if err == nil || !strings.Contains(err.Error(), c.want) || fault.KindOf(err) != fault.Refused && c.name != "an image without a place" {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	files := full()
	delete(files, "htop.pkg.tar.zst.sig")
	if _, err := specOf(t, files, Given{}); err == nil || !strings.Contains(err.Error(), `signature of package "htop"`) {
		t.Error(err)
	}
	files = full()
	files["site.json"] = strings.Replace(fullDeclaration, `{"id": "c"`, `{"id": "q", "type": "package", "name": "q", "source": "package:htop", "signature": "`+string(digest.FromBytes([]byte(files["htop.pkg.tar.zst"])))+`"}, {"id": "c"`, 1)
	if _, err := specOf(t, files, Given{}); err == nil {
		t.Error("a package is its own signature")
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	r, err := Read(folder(t, full()))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Fill(Given{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Spec(ctx, Making{Counter: 1}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
