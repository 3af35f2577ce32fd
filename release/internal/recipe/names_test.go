package recipe

import (
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

var (
	fileDigest      = digest.FromString("file")
	packageDigest   = digest.FromString("package")
	signatureDigest = digest.FromString("signature")
	imageDigest     = digest.FromString("image")
)

func someNames() names {
	n := newNames()
	n["source"]["file"]["tool"] = fileDigest
	n["source"]["package"]["htop"] = packageDigest
	n["signature"]["package"]["htop"] = signatureDigest
	n["image"]["image"]["registry:2"] = imageDigest
	return n
}

// The expected text is the same with the names in angle brackets replaced.
func TestOnlyNamesAreReplaced(t *testing.T) {
	filled := strings.NewReplacer(
		`<"file:tool">`, `"`+fileDigest.String()+`"`, `<"f\u0069le:tool">`, `"`+fileDigest.String()+`"`,
		`<"package:htop">`, `"`+packageDigest.String()+`"`, `<"package:htop" >`, `"`+signatureDigest.String()+`" `,
		`<"image:registry:2">`, `"`+imageDigest.String()+`"`, `<"counter">`, `12`)
	plain := strings.NewReplacer("<", "", ">", "")
	for _, c := range []string{
		`{"generation":<"counter">,"resources":[{"source":<"file:tool">},{"source" :` + "\n\t" + `<"package:htop">,"signature":<"package:htop" >}]}`,
		`{"resources": [{"image": <"image:registry:2">, "env": {"image": "image:registry:2", "source": "file:tool"}}]}`,
		`{"resources": [{"id": "source", "content": "file:tool", "args": ["source", "file:tool"], "source": <"f\u0069le:tool">}]}`,
		`{"resources": [{"image": "image:5000/web@sha256:00"}, {"image": "docker.io/library/web@sha256:00"}, {"source": "sha256:00"}]}`,
		`{"source": "file:tool", "resources": [["source", "file:tool"]], "more": [{"source": "file:tool"}]}`,
		`{"resources": {"source": "file:tool", "x": [{"source": "file:tool"}]}, "generation": {"generation": "counter"}}`,
		`[{"resources": [{"source": "file:tool"}]}]`,
		`{"resources": [{"content": "\"source\": \"file:tool\", ä \u00e4 \\\"", "x": -1.5e3, "y": null, "source": <"file:tool">}]}`,
		`"file:tool"`, `{"generation": "counters"}`, ``, `{"resources": [{"source": `, "\ufeff{}", `{"a" "b"}`,
	} {
		got, err := someNames().fill([]byte(plain.Replace(c)), 12)
		if want := filled.Replace(c); err != nil || string(got) != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
	}
}

func TestNamesThatAreOfNothing(t *testing.T) {
	for text, want := range map[string]string{
		`{"resources": [{"source": "file:toll"}]}`:        `names the file "toll", the recipe does not`,
		`{"resources": [{"source": "package:tool"}]}`:     `names the package "tool", the recipe does not`,
		`{"resources": [{"signature": "package:tool"}]}`:  `names the package "tool", the recipe does not`,
		`{"resources": [{"image": "image:registry"}]}`:    `names the image "registry", the recipe does not`,
		`{"resources": [{"signature": "file:tool"}]}`:     `its signature is "file:tool": that is no place for the digest of a file`,
		`{"resources": [{"image": "package:htop"}]}`:      `no place for the digest of a package`,
		`{"resources": [{"source": "image:registry:2"}]}`: `no place for the digest of an image`,
	} {
		if _, err := someNames().fill([]byte(text), 12); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Whatever the text, what is not a name stays: with no names and no counter in it
// nothing changes, and nothing hangs on how deep it is.
func FuzzFill(f *testing.F) {
	f.Add(`{"resources": [{"source": "sha256:00"}], "generation": 3}`)
	f.Add(strings.Repeat("[", 100000))
	f.Add(`{"a":{"b":[{"c":"d"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "counter") || strings.Contains(text, `\u`) {
			return
		}
		if got, err := newNames().fill([]byte(text), 12); err == nil && string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}
