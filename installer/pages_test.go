package installer

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// TestPagesAreLaidBelowThePrefix, where a tarball holds them, and nothing else that
// it may hold is.
func TestPagesAreLaidBelowThePrefix(t *testing.T) {
	more := map[string]string{"share/man/man8/mesh-host.8": ".TH mesh-host 8\n", "share/zsh/site-functions/_mesh-host": "#compdef\n", "share/other": "x\n"}
	p := newPublisher(t)
	with := p.unpacked(t, "1.0.0", standIn(t, "1.0.0"), func(content map[string]string, m *pkgbuild.Manifest) {
		for name, text := range more {
			sum := sha256.Sum256([]byte(text))
			m.Members = append(m.Members, pkgbuild.Member{Path: name, Mode: 0o644, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])})
			content[name] = text
		}
	})
	for name, text := range more {
		write(t, filepath.Join(with, name), text)
	}
	for _, prefix := range []string{"/usr/local", "/opt/nox"} {
		l := image(t)
		if err := os.Mkdir(l.Path("/opt"), 0o755); err != nil {
			t.Fatal(err)
		}
		before := tree(t, l.Root, false)
		if _, err := Install(t.Context(), Options{Layout: l, From: with, Prefix: prefix}); err != nil {
			t.Fatal(err)
		}
		if got := read(t, l.Path(prefix+"/share/man/man8/mesh-host.8")); got != ".TH mesh-host 8\n" {
			t.Errorf("the page is %q", got)
		}
		for path, want := range map[string]bool{"/share/zsh/site-functions/_mesh-host": true, "/share/fish": false, "/share/other": false} {
			if there(l, prefix+path) != want {
				t.Errorf("%s%s: there is %v", prefix, path, !want)
			}
		}
		// An upgrade to one without keeps them; the uninstall knows of them.
		if _, err := Install(t.Context(), Options{Layout: l, From: p.unpacked(t, "1.1.0", standIn(t, "1.1.0"), nil), Prefix: prefix}); err != nil {
			t.Fatal(err)
		}
		mustUninstall(t, UninstallOptions{Layout: l, Purge: true})
		if after := tree(t, l.Root, false); after != before {
			t.Errorf("left:\n%s", diff(before, after))
		}
	}
}
