package repository

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPacmanTakesAnOlderDatabase: a signature says who made a database, not that it is
// the newest one. Whoever is in the middle can hold a machine back at an old release;
// docs/security.md says so because of this.
func TestPacmanTakesAnOlderDatabase(t *testing.T) {
	needPacman(t)
	p := newPublisher(t)
	src, top := t.TempDir(), t.TempDir()
	repo, www, kept := filepath.Join(top, "repo"), filepath.Join(top, "www"), filepath.Join(top, "kept")
	publish := func(version string) {
		p.add(repo, p.pack(src, recipe{name: "web", version: version, info: "pkgdesc = w\nlicense = MIT\n", files: []string{"usr/", "usr/w"}}))
		p.mesh("repo", "publish", "--trust", p.keys, "--to", www, repo)
	}
	publish("1-1")
	if err := os.CopyFS(kept, os.DirFS(www)); err != nil {
		t.Fatal(err)
	}
	publish("2-1")
	server := filepath.Join(top, "server")
	for _, c := range []struct{ from, want string }{{www, "web 2-1\n"}, {kept, "web 1-1\n"}} {
		if err := os.Symlink(c.from, server); err != nil {
			t.Fatal(err)
		}
		m := p.machine("file://" + server)
		m.must("-Sy", "web")
		if got := m.must("-Q"); got != c.want {
			t.Errorf("from %s: %s", filepath.Base(c.from), got)
		}
		if err := os.Remove(server); err != nil {
			t.Fatal(err)
		}
	}
}
