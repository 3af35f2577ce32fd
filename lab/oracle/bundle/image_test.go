//go:build machine

package bundle

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// podmanBuilds builds an image with two layers, one file in each.
func (b *bench) podmanBuilds(name string, flags ...string) {
	b.t.Helper()
	b.put("Containerfile", "FROM scratch\nCOPY tool /tool\nCOPY site.json /site.json\nCMD [\"/tool\"]\nHEALTHCHECK CMD [\"/tool\"]\n")
	b.put("tool", "a tool\n")
	b.put("site.json", "{}")
	b.must(b.ask("podman", append(append([]string{"build", "-q", "--network", "none", "-t", name}, flags...), ".")...))
}

// bundled makes a bundle with the image that is at ref, where place lets it be
// reached, and returns the digest that the declaration has for it. "" means that it
// was refused, and said why.
func (b *bench) bundled(place []string, ref, out string) (digest, why string) {
	b.t.Helper()
	b.put("image.toml", "name = \"site\"\ndeclarations = [\"image.json\"]\n[[image]]\ntitle = \"web\"\n")
	b.put("image.json", `{"schema": 1, "name": "site", "generation": "counter", "resources": [
		{"id": "web", "type": "container", "name": "web", "image": "image:web"}]}`)
	a := b.in(place, b.path("mesh-release"), "bundle", "create", "image.toml", "--version", "1", "--arch", architecture,
		"--counter", "7", "--keys", "keys", "--image", "web="+ref, "--out", out)
	if a.code != 0 {
		return "", a.err
	}
	b.unpack(out, out+".unpacked")
	for _, e := range b.entries(out + ".unpacked") {
		if e.Annotations[refName] == "web" {
			return e.Digest, ""
		}
	}
	b.t.Fatalf("%s: index.json has no image", out)
	return "", ""
}

// copied holds that skopeo copies the image out of a bundle with that digest, layer
// by layer. Docker's manifests skopeo 1.9 finds by no name in a layout, so it is
// shown a layout that has this one only.
func (b *bench) copied(out, digest string) {
	b.t.Helper()
	from := "oci-archive:" + out + ":web"
	for _, e := range b.entries(out + ".unpacked") {
		if e.Digest == digest && e.MediaType != manifestType {
			e.Annotations = nil
			b.put(out+".unpacked/index.json", string(b.json(document{Manifests: []descriptor{e}, MediaType: indexType, SchemaVersion: 2})))
			from = "oci:" + out + ".unpacked"
		}
	}
	b.must(b.ask("skopeo", "copy", "--quiet", "--preserve-digests", from, "oci:"+out+".copy"))
	if got := b.entries(out + ".copy")[0].Digest; got != digest {
		b.t.Errorf("%s: skopeo copies %s out of it, not %s", out, got, digest)
	}
}

// TestAnImageKeepsItsDigestWhereverItWas: what podman and skopeo write, an OCI
// layout, a tar of one, a registry, with one image or one for each platform, comes
// out of the bundle as the image that skopeo finds in the source.
func TestAnImageKeepsItsDigestWhereverItWas(t *testing.T) {
	judges(t, "podman", "skopeo", "docker-registry", "tar")
	b := newBench(t)
	b.engine()
	b.podmanBuilds("example.test/web:v1", "--format", "oci")
	b.must(b.ask("podman", "save", "-q", "--format", "oci-archive", "-o", "web.oci.tar", "example.test/web:v1"))
	b.must(b.ask("podman", "save", "-q", "--format", "oci-dir", "-o", "web.oci", "example.test/web:v1"))
	r := b.registry()
	push := func(from, to string, flags ...string) {
		b.must(r.ask("skopeo", append([]string{"copy", "--quiet", "--dest-tls-verify=false", from, "docker://127.0.0.1:5000/" + to}, flags...)...))
	}
	push("oci-archive:web.oci.tar", "web:oci")
	push("oci-archive:web.oci.tar", "web:docker", "--format", "v2s2")
	// One for each platform.
	// Built one by one: of two that it builds at once podman 4.3 may lose one.
	b.must(b.ask("podman", "manifest", "create", "example.test/many:v1"))
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		name := "example.test/of-" + path.Base(platform) + ":v1"
		b.must(b.ask("podman", "build", "-q", "--network", "none", "--format", "oci", "--platform", platform, "-t", name, "."))
		b.must(b.ask("podman", "manifest", "add", "example.test/many:v1", "containers-storage:"+name))
	}
	b.must(b.ask("podman", "manifest", "push", "-q", "--all", "example.test/many:v1", "oci:many.oci:v1"))
	push("oci:many.oci:v1", "many:v1", "--all")

	digestOfRaw := func(a answer) string { return digestOf(b.must(a)) }
	inRegistry := func(tag string) (ref, want string) {
		want = digestOfRaw(r.ask("skopeo", "inspect", "--tls-verify=false", "--raw", "docker://127.0.0.1:5000/"+tag))
		return "docker://127.0.0.1:5000/" + tag + "@" + want, want
	}
	ofMany := b.read("many.oci", b.entries("many.oci")[0]).Manifests[map[string]int{"x86_64": 0, "aarch64": 1}[architecture]].Digest
	oci, wantOCI := inRegistry("web:oci")
	docker, wantDocker := inRegistry("web:docker")
	many, _ := inRegistry("many:v1")
	for _, c := range []struct {
		name, ref, want string
		place           []string
	}{
		{"podman save --format oci-archive", "oci-archive:web.oci.tar:example.test/web:v1", digestOfRaw(b.ask("skopeo", "inspect", "--raw", "oci-archive:web.oci.tar")), nil},
		{"podman save --format oci-dir", "oci:web.oci", digestOfRaw(b.ask("skopeo", "inspect", "--raw", "oci:web.oci")), nil},
		{"a registry, OCI's image", oci, wantOCI, r.place},
		{"a registry, Docker's image", docker, wantDocker, r.place},
		{"podman manifest push, for two platforms", "oci:many.oci:v1", ofMany, nil},
		{"a registry, for two platforms", many, ofMany, r.place},
	} {
		out := strings.ReplaceAll(strings.ReplaceAll(c.name, " ", "-"), ",", "") + ".bundle.tar"
		got, why := b.bundled(c.place, c.ref, out)
		if got != c.want {
			t.Errorf("%s: %s, not %s\n%s", c.name, got, c.want, why)
			continue
		}
		b.copied(out, c.want)
		tool.Verdict(t, "skopeo", "an image from "+c.name+", copied out of the bundle", "the digest it has there", "the same")
		b.must(b.ask(b.path("mesh-release"), "verify", "--trust", "keys", out))
	}
}

// TestAnArchiveOfDockerIsTheSameImage: "podman save" has no manifest in what it
// writes by default. What is made of it is to podman the image it was, with the same
// id: its configuration and layers. A health check is in there still, but podman
// heeds it in Docker's images only, of which it finds none by name in a layout.
func TestAnArchiveOfDockerIsTheSameImage(t *testing.T) {
	judges(t, "podman", "skopeo", "tar")
	b := newBench(t)
	b.engine()
	b.podmanBuilds("example.test/web:v1", "--format", "docker")
	b.podmanBuilds("example.test/other:v2", "--format", "docker", "--label", "other=yes")
	inspect := func(name string) (id, healthcheck string) {
		var x []struct {
			ID          string `json:"Id"`
			Healthcheck json.RawMessage
		}
		if err := json.Unmarshal([]byte(b.must(b.ask("podman", "image", "inspect", name))), &x); err != nil || len(x) != 1 {
			t.Fatal(err)
		}
		return x[0].ID, string(x[0].Healthcheck)
	}
	id, health := inspect("example.test/web:v1")
	if !strings.Contains(health, "/tool") {
		t.Fatalf("the image has no health check, so this tests nothing: %s", health)
	}
	b.must(b.ask("podman", "save", "-q", "--format", "docker-archive", "-o", "one.tar", "example.test/web:v1"))
	b.must(b.ask("podman", "save", "-q", "--format", "docker-archive", "-m", "-o", "two.tar", "example.test/other:v2", "example.test/web:v1"))
	b.must(b.ask("skopeo", "copy", "--quiet", "docker-archive:one.tar", "docker-archive:skopeo.tar:example.test/web:v1"))
	b.must(b.ask("podman", "rmi", "-f", "example.test/web:v1"))

	var first string
	for _, c := range []struct{ name, ref string }{
		{"podman save", "docker-archive:one.tar"},
		{"podman save -m", "docker-archive:two.tar:example.test/web:v1"},
		{"skopeo copy", "docker-archive:skopeo.tar:example.test/web:v1"},
	} {
		out := strings.ReplaceAll(c.name, " ", "-") + ".bundle.tar"
		digest, why := b.bundled(nil, c.ref, out)
		if digest == "" {
			t.Fatalf("%s: %s", c.name, why)
		}
		b.copied(out, digest)
		b.must(b.ask("podman", "pull", "-q", "oci-archive:"+out+":web"))
		pulled := strings.Fields(b.must(b.ask("podman", "images", "--no-trunc", "--digests", "--filter", "reference=*web*", "--format", "{{.ID}} {{.Digest}}")))
		if len(pulled) != 2 || pulled[0] != "sha256:"+id || pulled[1] != digest {
			t.Errorf("%s: podman has %q, want %s and %s", c.name, pulled, id, digest)
		}
		_, got := inspect(id)
		heeded := strings.Contains(got, "/tool")
		config := b.get(out + ".unpacked/blobs/sha256/" + id)
		if !strings.Contains(config, `"Healthcheck"`) {
			t.Errorf("%s: the configuration lost the health check: %s", c.name, config)
		}
		b.must(b.ask("podman", "rmi", "-f", id))
		if first == "" {
			first = b.get(out)
		} else if b.get(out) != first {
			t.Errorf("%s: another bundle than from podman save", c.name)
		}
		tool.Verdict(t, "podman", "an image from "+c.name+", pulled from the bundle", "the same id; its health check "+map[bool]string{true: "counts", false: "does not count"}[heeded], "the same id")
	}
	_, why := b.bundled(nil, "docker-archive:two.tar", "x.bundle.tar")
	if !strings.Contains(why, "several images: example.test/other:v2, example.test/web:v1") {
		t.Errorf("two images: %q", why)
	}
	_, why = b.bundled(nil, "oci-archive:one.tar", "x.bundle.tar")
	if !strings.Contains(why, `no OCI image layout: it has no "oci-layout"`) {
		t.Errorf("not what it is said to be: %q", why)
	}
}
