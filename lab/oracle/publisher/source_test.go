package publisher

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestSources: a source tree that lacks something, or has something else in its
// place, gives no release.
func TestSources(t *testing.T) {
	d := newDesk(t)
	good := d.tree("src")
	for _, name := range []string{"LICENSE", ".goreleaser.yaml", "release/recipes/first-node/bundle.toml", "release/recipes/first-node/control-plane.json"} {
		for what, spoil := range map[string]func(path string) error{
			"gone":        func(string) error { return nil },
			"a directory": func(path string) error { return os.Mkdir(path, 0o755) },
		} {
			path := d.path("src/" + name)
			must(t, os.Remove(path))
			must(t, spoil(path))
			r := d.mesh(build("o", one)...)
			d.fault(name+" "+what, r, 1, name)
			must(t, os.RemoveAll(path))
			d.put("src/"+name, good[name])
			if d.holds(name, "o") != "" {
				t.Errorf("%s %s: something was built", name, what)
			}
			d.tidy(name, d.dir)
		}
	}
	d.fault("no source", d.mesh(build("o", one, "--source", "none")...), 1, "none/.goreleaser.yaml: no such file")
}

// TestARecipeIsNoPipe: nothing hangs where a pipe is in the place of a file.
func TestARecipeIsNoPipe(t *testing.T) {
	d := newDesk(t)
	must(t, syscall.Mkfifo(d.path("pipe"), 0o600))
	const recipe = "tool.toml"
	d.put(recipe, "name = \"tool\"\ndeclarations = [\"tool.json\"]\n\n[[file]]\ntitle = \"tool\"\n")
	d.put("tool.json", `{"schema": 1, "name": "tool", "resources": [{"id": "tool", "type": "file", "path": "/opt/tool", "source": "file:tool"}]}`)
	bundle := func(args ...string) []string {
		return append([]string{"bundle", "create", "--keys", "keys", "--counter", "1", "--version", one, "--arch", "x86_64", "--out", "o"}, args...)
	}
	for what, args := range map[string][]string{
		"recipe":      bundle("pipe"),
		"payload":     bundle("--file", "tool=pipe", recipe),
		"repo add":    {"repo", "add", "--keys", "keys", "repo", "pipe"},
		"signed file": {"verify", "--trust", "keys", "pipe"},
	} {
		if what == "signed file" {
			d.put("pipe.sigstore.json", "{}")
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		r := d.command(ctx, shared.program, args...)
		stop()
		code := 1
		if what == "repo add" {
			code = 3
		}
		d.fault(what, r, code, "regular file")
	}
	if _, err := os.Lstat(d.path("o")); err == nil {
		t.Error("a bundle was made")
	}
}

// TestNothingMixedFromAChangingSource changes what is packed while it is packed:
// the release is of one of the two, in every file, or there is none.
func TestNothingMixedFromAChangingSource(t *testing.T) {
	d := newDesk(t)
	license := d.tree("src")["LICENSE"]
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			// A new file by rename, as an editor or git does it.
			if os.WriteFile(d.path("src/.new"), []byte(license[:len(license)-i%7]), 0o644) == nil {
				_ = os.Rename(d.path("src/.new"), d.path("src/LICENSE"))
			}
		}
	}()
	for range 3 {
		r := d.mesh(build("o", one)...)
		if r.code == 0 {
			d.ok("verify", "--trust", "keys", "o")
		}
	}
	close(stop)
	<-done
}
