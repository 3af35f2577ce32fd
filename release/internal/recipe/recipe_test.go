package recipe

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const plainDeclaration = `{"schema": 1, "name": "web", "generation": "counter", "resources": [
  {"id": "a", "type": "file", "path": "/opt/a", "source":  "file:tool"},
  {"id": "b", "type": "file", "path": "/opt/b", "content": "\"source\": \"file:tool\" \"generation\": \"counter\""}
]}`

const plainRecipe = `
name = "web"
version = "1.0.0"
architecture = "x86_64"
declarations = ["web.json"]
[[file]]
title = "tool"
path = "tool.bin"
`

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "bundle.toml")
}

func TestNamesBecomeDigests(t *testing.T) {
	path := folder(t, map[string]string{"bundle.toml": plainRecipe, "web.json": plainDeclaration, "tool.bin": "tool"})
	r, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Fill(Given{}); err != nil {
		t.Fatal(err)
	}
	s, err := r.Spec(t.Context(), Making{Counter: 77})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("tool"))
	hexSum := "sha256:" + hex.EncodeToString(sum[:])
	want := strings.Replace(plainDeclaration, `"source":  "file:tool"`, `"source":  "`+hexSum+`"`, 1)
	want = strings.Replace(want, `"generation": "counter"`, `"generation": 77`, 1)
	if got := string(s.Declarations[0].Bytes); got != want {
		t.Errorf("the declaration is\n%s\nwant\n%s", got, want)
	}
	if len(s.Payload) != 1 || s.Payload[0].Digest.String() != hexSum || s.Payload[0].Size != 4 || s.Payload[0].Title != "tool" {
		t.Errorf("payload %+v", s.Payload)
	}
	if needs := s.Declarations[0].Needs; len(needs) != 1 || needs[0].String() != hexSum {
		t.Errorf("needs %v", needs)
	}
	if s.Name != "web" || s.Version != "1.0.0" || s.Architecture != "x86_64" || s.Counter != 77 {
		t.Errorf("%+v", s)
	}
}

func TestRecipeRefuses(t *testing.T) {
	files := map[string]string{"bundle.toml": plainRecipe, "web.json": plainDeclaration, "tool.bin": "tool"}
	secret := strings.Replace(plainDeclaration, `"path": "/opt/b",`, `"path": "/opt/b", "secret": true,`, 1)
	for _, c := range []struct {
		name, file, text, want string
	}{
		{"a key that is not known", "bundle.toml", "colour = \"red\"\n" + plainRecipe, `"colour" is not known`},
		{"a key of a file that is not known", "bundle.toml", plainRecipe + "mode = \"0755\"\n", "is not known"},
		{"no TOML", "bundle.toml", "name = ", "line 1"},
		{"no name", "bundle.toml", "declarations = [\"web.json\"]\n", "needs a name"},
		{"a version that is none", "bundle.toml", strings.Replace(plainRecipe, "1.0.0", "1 0", 1), "is no version of a bundle"},
		{"a name that is none", "bundle.toml", strings.Replace(plainRecipe, `"web"`, `"Web"`, 1), "is no name of a bundle"},
		{"an architecture that is none", "bundle.toml", strings.Replace(plainRecipe, "x86_64", "mips", 1), `"mips" is no architecture`},
		{"a host that is none", "bundle.toml", "minimum_host = \"-\"\n" + plainRecipe, "is no version of a host"},
		{"a title of two lines", "bundle.toml", strings.Replace(plainRecipe, `title = "tool"`, `title = "to\nol"`, 1), "is not plain"},
		{"a file where an image belongs", "web.json", strings.Replace(plainDeclaration, "file:tool", "image:tool", 1), "no place for the digest of an image"},
		{"a package that is not there", "web.json", strings.Replace(plainDeclaration, "file:tool", "package:tool", 1), `names the package "tool"`},
		{"a title twice", "bundle.toml", plainRecipe + "[[file]]\ntitle = \"tool\"\npath = \"tool.bin\"\n", "is there twice"},
		{"a file nobody needs", "bundle.toml", plainRecipe + "[[file]]\ntitle = \"more\"\npath = \"web.json\"\n", `no declaration needs the file "more"`},
		{"a digest that is not there", "web.json", strings.Replace(plainDeclaration, "file:tool", "sha256:"+strings.Repeat("0", 64), 1), "is no file of the recipe"},
		{"a title that is not there", "web.json", strings.Replace(plainDeclaration, "file:tool", "file:toll", 1), `names the file "toll"`},
		{"secret content", "web.json", secret, "secret content"},
		{"an invalid declaration", "web.json", `{"schema": 1}`, "declaration is not valid"},
	} {
		changed := map[string]string{}
		for k, v := range files {
			changed[k] = v
		}
		changed[c.file] = c.text
		err := func() error {
			r, err := Read(folder(t, changed))
			if err != nil {
				return err
			}
			if err := r.Fill(Given{}); err != nil {
				return err
			}
			_, err = r.Spec(t.Context(), Making{Counter: 1})
			return err
		}()
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestFillSaysWhatIsMissing(t *testing.T) {
	files := map[string]string{"mesh-controller": "x"}
	for _, c := range []struct {
		given Given
		want  string
	}{
		{Given{Architecture: "x86_64", Files: files}, "no version"},
		{Given{Version: "1.0.0", Files: files}, "no architecture"},
		{Given{Version: "1/0", Architecture: "x86_64", Files: files}, `"1/0" is no version`},
		{Given{Version: "1.0.0", Architecture: "mips", Files: files}, `"mips" is no architecture`},
		{Given{Version: "1.0.0", Architecture: "x86_64"}, `no path for file "mesh-controller"`},
		{Given{Version: "1.0.0", Architecture: "x86_64", Files: map[string]string{"mesh-controller": "x", "other": "y"}}, `file "other" is given, which it does not name`},
		{Given{Version: "1.0.0", Architecture: "x86_64", Files: files, Packages: files}, `package "mesh-controller" is given, which`},
		{Given{Version: "1.0.0", Architecture: "x86_64", Files: files, Images: files}, `image "mesh-controller" is given, which`},
	} {
		r, err := Read("../../recipes/first-node/bundle.toml")
		if err != nil {
			t.Fatal(err)
		}
		err = r.Fill(c.given)
		if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestFirstNodeRaisesTheControlPlane(t *testing.T) {
	r, err := Read("../../recipes/first-node/bundle.toml")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(binary, []byte("controller"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.Fill(Given{Version: "1.0.0", Architecture: "x86_64", Files: map[string]string{"mesh-controller": binary},
		Folders: map[string]Tree{"seed": {"release.json": binary}}}); err != nil {
		t.Fatal(err)
	}
	s, err := r.Spec(t.Context(), Making{Counter: 1700000000})
	if err != nil {
		t.Fatal(err)
	}
	d, err := declaration.Parse(s.Declarations[0].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "control-plane" || d.Generation != 1700000000 {
		t.Errorf("name %q, generation %d", d.Name, d.Generation)
	}
	var keys []string
	for _, res := range d.Resources {
		keys = append(keys, res.Key())
		if res.File != nil && res.File.Directory && (res.File.Mode != 0o700 || res.File.Owner != "842") {
			t.Errorf("the state directory is %+v", res.File)
		}
		if res.Process != nil && res.Process.User != "842" {
			t.Errorf("the control plane runs as %q", res.Process.User)
		}
	}
	want := "file:/var/lib/nox-mesh-controller file:/usr/local/bin/mesh-controller file:/var/lib/nox-mesh-controller/seed/release.json process:mesh-controller"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("resources %s", got)
	}
}

// A pipe in the place of a file would hold a build up for ever.
func TestPipesAreRefused(t *testing.T) {
	for _, name := range []string{"bundle.toml", "web.json", "tool.bin"} {
		path := folder(t, map[string]string{"bundle.toml": plainRecipe, "web.json": plainDeclaration, "tool.bin": "tool"})
		pipe := filepath.Join(filepath.Dir(path), name)
		if err := os.Remove(pipe); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Read(path)
		if err == nil {
			if err = r.Fill(Given{}); err == nil {
				_, err = r.Spec(t.Context(), Making{Counter: 1})
			}
		}
		if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// One name of an architecture is in the bundle; either may be typed.
func TestAnArchitectureHasOneName(t *testing.T) {
	files := map[string]string{"bundle.toml": plainRecipe, "web.json": plainDeclaration, "tool.bin": "tool"}
	for _, c := range []struct{ written, given, want string }{
		{"amd64", "", "x86_64"}, {"arm64", "", "aarch64"}, {"x86_64", "arm64", "aarch64"}, {"x86_64", "", "x86_64"},
	} {
		files["bundle.toml"] = strings.Replace(plainRecipe, "x86_64", c.written, 1)
		s, err := specOf(t, files, Given{Architecture: c.given})
		if err != nil || s.Architecture != c.want {
			t.Errorf("%+v: %q, %v", c, s.Architecture, err)
		}
	}
}
