//go:build machine

package bundle

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// change writes a copy of a bundle, damaged.bundle.tar, in which the content of a
// member is another of the same length.
func (b *bench) change(bundle, content string, edit func(string) string) string {
	b.t.Helper()
	file, changed := b.get(bundle), edit(content)
	at := strings.Index(file, content)
	if at < 0 || changed == content || len(changed) != len(content) {
		b.t.Fatalf("no such content, or no change of it: %.100q", content)
	}
	b.put("damaged.bundle.tar", file[:at]+changed+file[at+len(content):])
	return "damaged.bundle.tar"
}

// flip flips a bit in the middle.
func flip(content string) string {
	out := []byte(content)
	out[len(out)/2] ^= 1
	return string(out)
}

// later sets another time in the header of a gzip file, which no decompressor cares
// for (RFC 1952).
func later(content string) string { return content[:4] + "\x01" + content[5:] }

// respelled changes the case of a letter in the signature's value, which is base64:
// it is read by everybody, and is another signature.
func respelled(signature string) string {
	out := []byte(signature)
	for at := strings.Index(signature, `"sig":"`) + 20; ; at++ {
		if c := out[at] | 0x20; 'a' <= c && c <= 'z' {
			out[at] ^= 0x20
			return string(out)
		}
	}
}

// TestDamage is what each says of a bundle in which one thing is not as it was
// signed. That some do not see it is why a bundle is verified first.
func TestDamage(t *testing.T) {
	judges(t, "skopeo", "oras", "cosign", "podman", "ctr", "containerd", "tar")
	b := newBench(t)
	b.engine()
	server := b.containerd()
	_, images := b.withImages()
	const file = "images.bundle.tar"
	index := b.entries("original")[0].name()
	var signature string
	for _, e := range b.entries("original") {
		if e.ArtifactType == signatureType {
			signature = b.read("original", e).Layers[0].name()
		}
	}
	layer := b.layer("original", images[app])
	renamed := func(d string) string { return strings.Replace(d, app, "example.test/web:v1", 1) }
	older := func(d string) string { return strings.Replace(d, `bundle.counter":"7"`, `bundle.counter":"6"`, 1) }
	cut := func(n int) string {
		b.put("damaged.bundle.tar", b.get(file)[:n])
		return "damaged.bundle.tar"
	}
	second := func() string {
		d := older(b.get("original/" + index))
		var member bytes.Buffer
		w := tar.NewWriter(&member)
		_ = w.WriteHeader(&tar.Header{Name: index, Size: int64(len(d)), Mode: 0o644, ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR})
		_, _ = w.Write([]byte(d))
		_ = w.Close()
		whole := b.get(file)
		b.put("damaged.bundle.tar", whole[:len(whole)-1024]+member.String())
		return "damaged.bundle.tar"
	}
	content := func(name string) string { return b.get("original/" + name) }

	skopeo := func(bundle string) answer {
		return b.ask("skopeo", "inspect", "--raw", "oci-archive:"+bundle+":bundle")
	}
	skopeoAll := func(bundle string) answer {
		return b.ask("skopeo", "copy", "--all", "oci-archive:"+bundle+":bundle", "dir:all")
	}
	skopeoImage := func(bundle string) answer {
		return b.ask("skopeo", "copy", "oci-archive:"+bundle+":"+app, "dir:image")
	}
	podman := func(bundle string) answer { return b.ask("podman", "pull", "oci-archive:"+bundle+":"+app) }
	oras := func(bundle string) answer {
		return b.ask("oras", "manifest", "fetch", "--oci-layout", bundle+":bundle")
	}
	orasAll := func(bundle string) answer {
		b.must(b.ask("rm", "-rf", "copy"))
		return b.ask("oras", "cp", "-r", "--no-tty", "--from-oci-layout", bundle+":bundle", "--to-oci-layout", "copy:bundle")
	}
	cosign := func(bundle string) answer {
		b.must(b.ask("rm", "-rf", "there"))
		b.unpack(bundle, "there")
		return b.ask("cosign", "verify-blob", "--key", "keys/release.pub", "--bundle", "there/"+signature, "--insecure-ignore-tlog", "there/"+index)
	}

	imports := 0
	ctr := func(bundle string) answer {
		imports++ // each into a namespace of its own, where nothing is yet
		return server.ctr(fmt.Sprint("import", imports), "images", "import", "--no-unpack", bundle)
	}
	mount := func(bundle string) answer {
		b.must(ctr(bundle))
		return server.ctr(fmt.Sprint("import", imports), "images", "mount", "--snapshotter", "native", app, "mnt")
	}

	type asked struct {
		how  string
		ask  func(bundle string) answer
		want verdict
	}
	for _, c := range []struct {
		name   string
		damage func() string
		ours   verdict
		theirs []asked
	}{
		{"as it is", func() string { return file }, accepts, []asked{
			{"verify-blob of the index, unpacked", cosign, accepts},
			{"cp -r FILE:bundle", orasAll, accepts},
			{"copy --all FILE:bundle", skopeoAll, accepts},
		}},
		{"an older counter in the index", func() string { return b.change(file, content(index), older) }, "digest mismatch", []asked{
			{"verify-blob of the index, unpacked", cosign, "failed to verify"},
			{"manifest fetch FILE:bundle", oras, "digest"},
			{"cp -r FILE:bundle", orasAll, "digest"},
			{"inspect --raw FILE:bundle", skopeo, accepts},
			{"copy --all FILE:bundle", skopeoAll, accepts},
			{"images import --no-unpack FILE", ctr, "digest"},
		}},
		{"another signature", func() string { return b.change(file, content(signature), respelled) }, "digest mismatch", []asked{
			{"verify-blob of the index, unpacked", cosign, "failed to verify"},
			{"cp -r FILE:bundle", orasAll, "digest"},
			{"inspect --raw FILE:bundle", skopeo, accepts},
		}},
		{"a flipped bit in a file", func() string { return b.change(file, strings.Repeat("a tool\n", 1000), flip) }, "digest mismatch", []asked{
			{"cp -r FILE:bundle", orasAll, "digest"},
			{"copy --all FILE:bundle", skopeoAll, "Digest did not match"},
			{"copy FILE:" + app, skopeoImage, accepts},
		}},
		{"another time in the gzip header of an image's layer", func() string { return b.change(file, content(layer), later) }, "digest mismatch", []asked{
			{"cp -r FILE:bundle", orasAll, "digest"},
			{"copy FILE:" + app, skopeoImage, "Digest did not match"},
			{"pull oci-archive:FILE:" + app, podman, "Digest did not match"},
			{"images import --no-unpack FILE", ctr, accepts},
			{"images mount " + app + " after that", mount, "not found"},
		}},
		// index.json is not signed, so others take an image by whatever name it has
		// there. The same names are in the index, which is.
		{"another name for an image in index.json", func() string { return b.change(file, content("index.json"), renamed) }, `it was signed as "` + app + `"`, []asked{
			{"copy FILE:example.test/web:v1", func(bundle string) answer {
				return b.ask("skopeo", "copy", "oci-archive:"+bundle+":example.test/web:v1", "dir:web")
			}, accepts},
			{"copy FILE:" + app, skopeoImage, "no descriptor found for reference"},
		}},
		{"a second index of that name at the end", second, "duplicate member", []asked{
			{"manifest fetch FILE:bundle", oras, "digest"},
			{"inspect --raw FILE:bundle", skopeo, accepts},
			{"images import --no-unpack FILE", ctr, accepts},
		}},
		// Where one member ends and the next begins, a tar of others may end as well.
		{"cut in a file", func() string { return cut(strings.Index(b.get(file), "a tool\n") + 3500) }, "truncated", []asked{
			{"manifest fetch FILE:bundle", oras, "EOF"},
			{"inspect --raw FILE:bundle", skopeo, "EOF"},
			{"pull oci-archive:FILE:" + app, podman, "EOF"},
			{"images import --no-unpack FILE", ctr, "EOF"},
		}},
		{"cut before the end blocks", func() string { return cut(len(b.get(file)) - 1024) }, "truncated", []asked{
			{"cp -r FILE:bundle", orasAll, accepts},
			{"copy --all FILE:bundle", skopeoAll, accepts},
			{"pull oci-archive:FILE:" + app, podman, accepts},
			{"images import --no-unpack FILE", ctr, accepts},
		}},
	} {
		bundle := c.damage()
		for _, a := range c.theirs {
			b.judged(c.name+": "+a.how, a.ask(bundle), a.want, bundle, c.ours)
		}
	}
}
