package recipe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const folderRecipe = `
name = "site"
version = "1"
architecture = "x86_64"
declarations = ["site.json"]
[[folder]]
title = "pages"
path = "pages"
`

// TestAFolderIsAResourceForEachFile: as the document has it, to the byte, but for
// the name of the file.
func TestAFolderIsAResourceForEachFile(t *testing.T) {
	files := map[string]string{"bundle.toml": folderRecipe, "site.json": `{"schema": 1, "name": "site", "generation": "counter", "resources": [
    {"id": "top", "type": "file", "path": "/srv", "directory": true},
    { "id": "pages", "type":"file", "path": "/srv/site", "source": "folder:pages", "mode": "0640", "after": ["top"] },
    {"id": "end", "type": "file", "path": "/srv/end", "content": "folder:pages"}
]}`}
	bundle := folder(t, files)
	for name, text := range map[string]string{"b.html": "<b>", "a/x+1.html": "<a>"} {
		path := filepath.Join(filepath.Dir(bundle), "pages", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Read(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Fill(Given{}); err != nil {
		t.Fatal(err)
	}
	s, err := r.Spec(t.Context(), Making{Counter: 7})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema": 1, "name": "site", "generation": 7, "resources": [
    {"id": "top", "type": "file", "path": "/srv", "directory": true},
    { "id": "pages/a/x_1.html", "type":"file", "path": "/srv/site/a/x+1.html", "source": "` + digest.FromString("<a>").String() + `", "mode": "0640", "after": ["top"] },
    { "id": "pages/b.html", "type":"file", "path": "/srv/site/b.html", "source": "` + digest.FromString("<b>").String() + `", "mode": "0640", "after": ["top"] },
    {"id": "end", "type": "file", "path": "/srv/end", "content": "folder:pages"}
]}`
	if got := string(s.Declarations[0].Bytes); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(s.Payload) != 2 || s.Payload[0].Title != "pages/a/x+1.html" || s.Payload[1].Title != "pages/b.html" {
		t.Errorf("%+v", s.Payload)
	}

	// What leads elsewhere is not taken along.
	if err := os.Symlink("/etc/passwd", filepath.Join(filepath.Dir(bundle), "pages/c.html")); err != nil {
		t.Fatal(err)
	}
	if r, err = Read(bundle); err != nil {
		t.Fatal(err)
	}
	if err := r.Fill(Given{}); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "c.html") {
		t.Errorf("a symlink in the folder: %v", err)
	}
}

func TestAFolderIsGivenAndNamed(t *testing.T) {
	declared := func(source string) map[string]string {
		return map[string]string{"bundle.toml": strings.ReplaceAll(folderRecipe, "path = \"pages\"\n", ""), "one": "1",
			"site.json": `{"schema": 1, "name": "site", "generation": 1, "resources": [{"id": "a", "type": "file", "path": "/srv/a", "source": "` + source + `"}]}`}
	}
	for source, c := range map[string]struct {
		given map[string]Tree
		say   string
	}{
		"folder:pages": {nil, `no path for folder "pages"`},
		"folder:other": {map[string]Tree{"pages": {"one": "one"}}, `it names the folder "other", the recipe does not`},
		"file:pages/x": {map[string]Tree{"pages": {"one": "one"}}, `it names the file "pages/x", the recipe does not`},
		"folder:empty": {map[string]Tree{"pages": {}}, "has no file"},
		"folder:out":   {map[string]Tree{"pages": {"../one": "one"}}, "no name for a file"},
		"folder:more":  {map[string]Tree{"pages": {"one": "one"}, "more": {"one": "one"}}, `the folder "more" is given`},
	} {
		bundle := folder(t, declared(source))
		for _, tree := range c.given {
			for name := range tree {
				tree[name] = filepath.Join(filepath.Dir(bundle), "one")
			}
		}
		r, err := Read(bundle)
		if err != nil {
			t.Fatal(err)
		}
		if err = r.Fill(Given{Folders: c.given}); err == nil {
			_, err = r.Spec(t.Context(), Making{Counter: 7})
		}
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, not %q", source, err, c.say)
		}
	}
}
