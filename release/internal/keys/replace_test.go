package keys

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// lying is all that lies in a directory: symlinks by where they lead, else content.
func lying(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch e.Type() {
		case fs.ModeSymlink:
			to, err := os.Readlink(path)
			if err != nil {
				t.Fatal(err)
			}
			out[e.Name()] = "-> " + to
		case fs.ModeDir:
			out[e.Name()] = "a directory"
		default:
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out[e.Name()] = string(b)
		}
	}
	return out
}

// publisher is a directory of keys that has seen everything, and what it exported
// before it had.
func publisher(t *testing.T) (dir, early string) {
	t.Helper()
	dir, early = initialised(t), filepath.Join(t.TempDir(), "early")
	if _, err := Export(dir, early); err != nil {
		t.Fatal(err)
	}
	if _, err := Rotate(dir, Rotation{Release: true, Package: true}, given(phrase), moment); err != nil {
		t.Fatal(err)
	}
	s, err := Promote(dir, Promotion{Unshipped: true, Now: moment})
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(early, KeyringTrusted))
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(string(first), ":")
	if strings.EqualFold(id, s.Package) {
		t.Fatal("the package key is still the first")
	}
	if _, err := Revoke(dir, id, given(phrase)); err != nil {
		t.Fatal(err)
	}
	return dir, early
}

// TestAnExportReplacesOnlyAnExportOfTheSameKeys.
func TestAnExportReplacesOnlyAnExportOfTheSameKeys(t *testing.T) {
	dir, early := publisher(t)
	late := filepath.Join(t.TempDir(), "late")
	if _, err := Export(dir, late); err != nil {
		t.Fatal(err)
	}
	want := lying(t, late)
	if len(want) != 8 { // three roots, two keys, the keyring
		t.Fatalf("%v", want)
	}
	// Another publisher: keys, and what is public of them.
	stranger := t.TempDir()
	if _, err := Init(stranger, []byte(phrase), moment); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(t.TempDir(), "theirs")
	if _, err := Export(stranger, theirs); err != nil {
		t.Fatal(err)
	}

	copied := func(from string, names ...string) func(t *testing.T, out string) {
		return func(t *testing.T, out string) {
			for name, content := range lying(t, from) {
				for _, n := range names {
					if n == name {
						put(t, filepath.Join(out, name), []byte(content))
					}
				}
			}
		}
	}
	all := func(from string) func(t *testing.T, out string) {
		return func(t *testing.T, out string) {
			for name, content := range lying(t, from) {
				put(t, filepath.Join(out, name), []byte(content))
			}
		}
	}
	written := func(name, text string) func(t *testing.T, out string) {
		return func(t *testing.T, out string) { put(t, filepath.Join(out, name), []byte(text)) }
	}

	for what, c := range map[string]struct {
		lay func(t *testing.T, out string)
		// keeps is the one file more that is there afterwards.
		keeps string
	}{
		"nothing":           {},
		"the last export":   {all(late), ""},
		"an early export":   {all(early), ""},
		"half of an export": {copied(early, FirstRoot, KeyringTrusted), ""},
		"an empty file":     {written(ReleasePublic, ""), ""},
		"something else":    {written("README", "mine"), "README"},
	} {
		t.Run(what, func(t *testing.T) {
			out := t.TempDir()
			if c.lay != nil {
				c.lay(t, out)
			}
			if _, err := Export(dir, out); err != nil {
				t.Fatal(err)
			}
			got := lying(t, out)
			if c.keeps != "" && got[c.keeps] != "mine" {
				t.Errorf("%q is %q", c.keeps, got[c.keeps])
			}
			delete(got, c.keeps)
			if !maps.Equal(got, want) {
				t.Errorf("%v", got)
			}
		})
	}

	refused := map[string]func(t *testing.T, out string){
		"another publisher's keys": all(stranger),
		"its public half":          all(theirs),
		"a root of the future": func(t *testing.T, out string) {
			all(late)(t, out)
			put(t, filepath.Join(out, "4.root.json"), []byte("{}"))
		},
		"a private key":   written("server.key", "mine"),
		"an OpenPGP key":  written("2.package.secret.asc", "mine"),
		"a root, changed": written("2.root.json", "{}"),
		"armored secrets": copied(dir, "release.key"),
		"two publishers' keyrings": func(t *testing.T, out string) {
			put(t, filepath.Join(out, KeyringGPG), []byte(lying(t, early)[KeyringGPG]+lying(t, theirs)[KeyringGPG]))
		},
		"two publishers' trust": func(t *testing.T, out string) {
			put(t, filepath.Join(out, KeyringTrusted), []byte(lying(t, early)[KeyringTrusted]+lying(t, theirs)[KeyringTrusted]))
		},
		"a list of something else":   written(KeyringRevoked, "\n"),
		"more than any file of ours": written(ReleasePublic, strings.Repeat("x", maxFile+1)),
		"a symlink to the same": func(t *testing.T, out string) {
			if err := os.Symlink(filepath.Join(late, ReleasePublic), filepath.Join(out, ReleasePublic)); err != nil {
				t.Fatal(err)
			}
		},
		"a directory": func(t *testing.T, out string) {
			if err := os.Mkdir(filepath.Join(out, KeyringGPG), 0o700); err != nil {
				t.Fatal(err)
			}
		},
	}
	for _, name := range []string{FirstRoot, ReleasePublic, PackagePublic, KeyringGPG, KeyringTrusted} {
		refused["their "+name] = copied(theirs, name)
		refused["a text called "+name] = written(name, "mine")
	}
	for what, lay := range refused {
		t.Run(what, func(t *testing.T) {
			out := t.TempDir()
			lay(t, out)
			before := lying(t, out)
			_, err := Export(dir, out)
			if what == "more than any file of ours" {
				if err == nil {
					t.Error("it was replaced")
				}
			} else if fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) == "" {
				t.Errorf("%v; %s", err, fault.RemedyOf(err))
			}
			if after := lying(t, out); !maps.Equal(after, before) {
				t.Errorf("there is %v, there was %v", after, before)
			}
		})
	}

	// Onto itself, by any name.
	before := lying(t, dir)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{dir, link} {
		if _, err := Export(dir, out); fault.KindOf(err) != fault.Refused {
			t.Errorf("%v", err)
		}
	}
	if !maps.Equal(lying(t, dir), before) {
		t.Error("the keys are changed")
	}
	// Nor is what is public exported onto itself, which has no secret in it.
	if _, err := Export(late, late); fault.KindOf(err) != fault.Refused || !maps.Equal(lying(t, late), want) {
		t.Errorf("%v", err)
	}
}

// TestWhoSeesAPrivateKey: others who may write it are refused, others who may read it
// are said.
func TestWhoSeesAPrivateKey(t *testing.T) {
	for _, name := range []string{ReleaseKey, PackageSecret} {
		for _, c := range []struct {
			mode    os.FileMode
			seen    bool
			refused bool
		}{
			{0o600, false, false}, {0o400, false, false}, {0o604, true, false}, {0o644, true, false},
			{0o602, false, true}, {0o666, true, true}, {0o777, true, true},
		} {
			dir := initialised(t)
			path := filepath.Join(dir, name)
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			_, err := Open(dir, ReleaseKey, given(phrase))
			if err == nil {
				_, err = OpenPackage(dir, given(phrase))
			}
			if c.refused != (fault.KindOf(err) == fault.Refused && strings.Contains(err.Error(), "can be written by others")) || !c.refused && err != nil {
				t.Errorf("%s of mode %04o: %v", name, c.mode, err)
			}
			if got := Seen(dir); (len(got) == 1 && got[0] == path) != c.seen || !c.seen && len(got) > 0 {
				t.Errorf("%s of mode %04o: seen are %v", name, c.mode, got)
			}
		}
	}
}
