package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestAnImageComesOutUntouched(t *testing.T) {
	f := newLayout()
	d := f.image("linux/amd64")
	f.index(tagged(d, "v1"), tagged(f.image("linux/amd64/v1"), "example.test/other:v2"))
	manifest := f["blobs/sha256/"+d.Digest.Encoded()]
	dir, archive := f.dir(t), f.tar(t)
	for _, ref := range []string{"oci:" + dir + ":v1", "oci-archive:" + archive + ":v1", "oci-archive:" + archive + ":v1@" + string(d.Digest)} {
		i := mustRead(t, ref)
		if i.Digest != d.Digest || !bytes.Equal(i.Manifest, manifest) || i.MediaType != v1.MediaTypeImageManifest {
			t.Errorf("%s: %s", ref, i.Manifest)
		}
		want := []string{configOf("linux/amd64", 2), sharedLayer, layerFor("linux/amd64")}
		if got := contents(t, i); !slices.Equal(got, want) {
			t.Errorf("%s: %q", ref, got)
		}
	}
	if i := mustRead(t, "oci:"+dir+":example.test/other:v2"); i.Digest == d.Digest {
		t.Error("the tag does not count")
	}
	_, err := readRef(t, "oci:"+dir)
	refused(t, err, "several images: example.test/other:v2, v1")
	_, err = readRef(t, "oci:"+dir+":v3")
	refused(t, err, `no image "v3", only: example.test/other:v2, v1`)
	_, err = readRef(t, "oci:"+dir+":v1@"+someDigest)
	refused(t, err, "it is "+string(d.Digest))
}

// Docker's containerd store writes the whole name elsewhere.
func TestANameOfContainerdIsATag(t *testing.T) {
	f := newLayout()
	d := f.image("linux/amd64")
	d.Annotations = map[string]string{containerdName: "docker.io/library/web:v1", v1.AnnotationRefName: "v1"}
	f.index(d)
	if i := mustRead(t, "oci:"+f.dir(t)+":docker.io/library/web:v1"); i.Digest != d.Digest {
		t.Error(i.Digest)
	}
}

func TestLinksCountForWhatTheyLeadTo(t *testing.T) {
	f := newLayout()
	d := f.image("linux/amd64")
	f.index(d)
	name := "blobs/sha256/" + d.Digest.Encoded()
	f["elsewhere/manifest"] = f[name]
	delete(f, name)
	for _, link := range []tar.Header{
		{Typeflag: tar.TypeLink, Name: name, Linkname: "elsewhere/manifest"},
		{Typeflag: tar.TypeSymlink, Name: "./" + name, Linkname: "../../elsewhere/manifest"},
	} {
		if i := mustRead(t, "oci-archive:"+f.tar(t, link)); i.Digest != d.Digest {
			t.Error(i.Digest)
		}
	}
	dir := f.dir(t)
	if err := os.Symlink("../../elsewhere/manifest", filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	if i := mustRead(t, "oci:"+dir); i.Digest != d.Digest {
		t.Error(i.Digest)
	}
}

func TestLinksLeadNowhereElse(t *testing.T) {
	f := newLayout()
	d := f.image("linux/amd64")
	f.index(d)
	name := "blobs/sha256/" + d.Digest.Encoded()
	manifest := f[name]
	delete(f, name)
	outside := filepath.Join(t.TempDir(), "manifest")
	if err := os.WriteFile(outside, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		link tar.Header
	}{
		{"leads out of the archive", tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: outside}},
		{"leads out of the archive", tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "../../.." + outside}},
		{"leads out of the archive", tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: "../manifest"}},
		{"it is not there", tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "none"}},
		{"link to a link", tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: d.Digest.Encoded()}},
		{"neither file nor link", tar.Header{Typeflag: tar.TypeFifo, Name: name}},
	} {
		_, err := readRef(t, "oci-archive:"+f.tar(t, c.link))
		refused(t, err, c.text)
	}
	for _, target := range []string{outside, "../../../../../../../../" + outside} {
		dir := f.dir(t)
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		_, err := readRef(t, "oci:"+dir)
		refused(t, err, "is a link that leads out of it")
	}
	dir := f.dir(t)
	if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := readRef(t, "oci:"+dir)
	refused(t, err, "is not a regular file")
}

func TestArchivesThatAreNone(t *testing.T) {
	f := newLayout()
	f.index(f.image("linux/amd64"))
	good := f.tar(t)
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(b)
	z.Close()
	for text, content := range map[string][]byte{
		"the archive is compressed (gzip)": packed.Bytes(),
		"no whole tar archive":             b[:700],
		"it is no OCI image layout":        make([]byte, 1024),
	} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readRef(t, "oci-archive:"+path)
		refused(t, err, text)
	}
	_, err = readRef(t, "oci-archive:"+f.tar(t, tar.Header{Name: "index.json"}))
	refused(t, err, `member "index.json" is there twice`)
	_, err = readRef(t, "oci-archive:"+newLayout().tar(t, tar.Header{Name: strings.Repeat("a/", 3000) + "index.json"}))
	refused(t, err, `it has no "index.json"`)
	_, err = readRef(t, "oci-archive:"+t.TempDir())
	refused(t, err, "is not a regular file")
	for _, ref := range []string{"oci:", "oci-archive:", "docker-archive:"} {
		if _, err := readRef(t, ref+"/nowhere"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, err := readRef(t, "oci:"+good); err == nil {
		t.Error("a file is no directory")
	}
}

func TestWhatChangesWhileItIsReadIsFound(t *testing.T) {
	f := newLayout()
	d := f.image("linux/amd64")
	f.index(d)
	dir, archive := f.dir(t), f.tar(t)
	shared := []byte(sharedLayer)
	other := bytes.Replace(shared, []byte("share"), []byte("SHARE"), 1)
	for name, change := range map[string]func() string{
		"another content": func() string {
			b, err := os.ReadFile(archive)
			if err != nil {
				t.Fatal(err)
			}
			return replace(t, archive, bytes.Replace(b, shared, other, 1))
		},
		"shorter": func() string { return replace(t, archive, nil) },
	} {
		i := mustRead(t, "oci-archive:"+archive)
		restore := change()
		r, err := i.Open(ctx, i.Layers[0])
		if err == nil {
			_, err = new(bytes.Buffer).ReadFrom(r)
			r.Close()
		}
		refused(t, err, string(i.Layers[0].Digest))
		if err := os.Rename(restore, archive); err != nil {
			t.Fatal(name, err)
		}
	}
	i := mustRead(t, "oci:"+dir)
	path := filepath.Join(dir, "blobs/sha256", i.Layers[0].Digest.Encoded())
	if err := os.WriteFile(path, other, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := i.Open(ctx, i.Layers[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = new(bytes.Buffer).ReadFrom(r)
	refused(t, err, "its content is "+string(digest.FromBytes(other)))
}

// replace puts content in the place of a file and returns where that now is.
func replace(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path + ".old"
}
