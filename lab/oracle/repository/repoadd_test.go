package repository

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// matrix is every kind of package that the databases say something else of.
func matrix() []recipe {
	many := []string{"usr/", "usr/share/", "usr/share/many/"}
	for n := range 3000 {
		many = append(many, fmt.Sprintf("usr/share/many/%d", (n*7919)%3000))
	}
	return []recipe{
		{name: "plain", version: "1.0-1", info: "pkgdesc = plain\nurl = http://example.test\nlicense = MIT\n", files: []string{"usr/", "usr/plain"}},
		{name: "full", version: "1.0-1", arch: "x86_64", info: "pkgdesc = has all\nurl = https://example.test/\nlicense = MIT\nlicense = GPL-2.0-or-later WITH x\n" +
			"replaces = old\nreplaces = older<2\ngroup = g1\ngroup = g2\nconflict = full-git\nprovides = libfull.so=1-64\nprovides = f=1:2.0-1\nbackup = etc/f\n" +
			"depend = glibc>=2.1\ndepend = sh\noptdepend = vim: to  edit = write\noptdepend = z\nmakedepend = go\ncheckdepend = strace\n",
			files: []string{"etc/", "etc/.hidden", "etc/f", "usr/", "usr/l.link"}},
		{name: "epoch", version: "3:2.0-1", info: "pkgdesc = e\n", files: []string{"usr/", "usr/e"}},
		{name: "pre", version: "1.0.0rc1-1", info: "pkgdesc = p\n", files: []string{"usr/"}},
		{name: "rel", version: "1.0_x+y-1.1", info: "pkgdesc = r\n", files: []string{"usr/"}},
		{name: "words", version: "1-1", info: "pkgdesc = Größe, 你好  two  blanks　and wide = 1 ==\nurl = http://example.test/?q=\nlicense = a==\n",
			files: []string{"usr/", "usr/größe", "usr/with blank", `usr/system\x2dd.slice`, "usr/Z", "usr/_", "usr/a-b", "usr/a/", "usr/a/b"}},
		{name: "none", version: "1-1", info: "pkgdesc = no files\n"},
		{name: "many", version: "1-1", info: "pkgdesc = many files\n", files: many},
		{name: "many-more", version: "1-1", info: "pkgdesc = begins like another\n", files: []string{"usr/"}},
	}
}

func TestEntriesAreThoseOfRepoAdd(t *testing.T) {
	need(t, "repo-add", "repo-remove", "bsdtar")
	p := newPublisher(t)
	src := t.TempDir()
	var packages []string
	for _, r := range matrix() {
		packages = append(packages, p.pack(src, r))
	}
	if made := p.makepkg(src); made != "" {
		packages = append(packages, made)
	}
	ours, theirs := p.add(filepath.Join(t.TempDir(), "ours"), packages...), t.TempDir()
	p.repoAdd("repo-add", theirs, packages...)
	same(t, "a new repository", ours, theirs, 3*len(packages))

	// Each goes on from the other's, and they stay the same.
	next := p.pack(src, recipe{name: "plain", version: "2.0-1", info: "pkgdesc = next\n"})
	for _, f := range []string{next, next + ".sig"} {
		put(t, filepath.Join(ours, filepath.Base(f)), string(get(t, f)))
	}
	p.repoAdd("repo-add", ours, filepath.Join(ours, filepath.Base(next)))
	p.repoAdd("repo-add", theirs, next)
	same(t, "repo-add goes on from ours", ours, theirs, 3*len(packages))
	if list := p.mesh("repo", "list", "--trust", p.keys, ours); !strings.Contains(list, "2.0-1") {
		t.Errorf("after repo-add:\n%s", list)
	}
	p.repoAdd("repo-remove", ours, "epoch", "many")
	p.repoAdd("repo-remove", theirs, "epoch", "many")
	same(t, "repo-remove takes from ours", ours, theirs, 3*len(packages)-6)
	for _, f := range []string{"epoch-3:2.0-1-any", "many-1-1-any"} { // repo-remove leaves them
		os.Remove(filepath.Join(ours, f+".pkg.tar.zst"))
		os.Remove(filepath.Join(ours, f+".pkg.tar.zst.sig"))
	}
	last := p.pack(src, recipe{name: "last", version: "1-1", info: "pkgdesc = last\n"})
	p.add(ours, last)
	p.repoAdd("repo-add", theirs, last)
	same(t, "repo add goes on from repo-remove's", ours, theirs, 3*len(packages)-3)
	p.mesh("repo", "remove", "--keys", p.keys, "--passphrase-file", p.secret, ours, "full")
	p.repoAdd("repo-remove", theirs, "full")
	same(t, "repo remove", ours, theirs, 3*len(packages)-6)
	p.mesh("repo", "publish", "--trust", p.keys, "--to", filepath.Join(t.TempDir(), "www"), ours)
}

// same compares every "desc" and "files" of two repositories; there are n of them
// in both databases of one.
func same(t *testing.T, step, ours, theirs string, n int) {
	t.Helper()
	var all [2]map[string]string
	for i, dir := range []string{ours, theirs} {
		all[i] = map[string]string{}
		for _, db := range []string{"db", "files"} {
			to := t.TempDir()
			run(t, nil, "bsdtar", "-xf", filepath.Join(dir, "nox-mesh."+db), "-C", to)
			err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					rel, _ := filepath.Rel(to, path)
					all[i][db+" "+rel] = string(get(t, path))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(all[1]) != n {
		t.Errorf("repo-add wrote %d files, want %d", len(all[1]), n)
	}
	answer, size := "same bytes", 0
	differs := func(format string, args ...any) {
		answer = "differs: " + fmt.Sprintf(format, args...)
	}
	for name, want := range all[1] {
		size += len(want)
		if got, ok := all[0][name]; !ok || got != want {
			t.Errorf("%s is\n%.1500s\nrepo-add has\n%.1500s", name, got, want)
			differs("%s, %d bytes for %d", name, len(got), len(want))
		}
		if step == "a new repository" && strings.HasPrefix(name, "files ") {
			said := "same bytes"
			if all[0][name] != want {
				said = fmt.Sprintf("differs: %d bytes", len(all[0][name]))
			}
			tool.Verdict(t, "repo-add", name[len("files "):], fmt.Sprintf("%d bytes", len(want)), said)
		}
		delete(all[0], name)
	}
	for name := range all[0] {
		t.Errorf("%s: repo-add has none", name)
		differs("repo-add has no %s", name)
	}
	tool.Verdict(t, "repo-add", step+", nox-mesh.db and .files", fmt.Sprintf("%d entries, %d bytes", len(all[1]), size), answer)
}

// makepkg makes a package with the real makepkg, or "" where it is missing. It
// does not run as root.
func (p *publisher) makepkg(src string) string {
	p.t.Helper()
	for _, tool := range []string{"makepkg", "fakeroot", "setpriv"} {
		if _, err := exec.LookPath(tool); err != nil {
			p.t.Logf("without a package of makepkg's: %s is not here", tool)
			return ""
		}
	}
	dir, err := os.MkdirTemp("/tmp", "makepkg")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { os.RemoveAll(dir) })
	put(p.t, filepath.Join(dir, "PKGBUILD"), `pkgname=made
pkgver=1.2.3
pkgrel=4
epoch=1
pkgdesc="made by   makepkg, für alle"
arch=(any)
url="https://example.test/?x=1"
license=('MIT' 'custom:x')
groups=(base)
depends=('sh' 'glibc>=2')
optdepends=('vim: an editor')
makedepends=()
provides=('made-it=1')
conflicts=('made-not')
replaces=('unmade')
backup=(etc/made.conf)
options=(!strip)
package() {
	install -Dm644 /dev/null "$pkgdir/etc/made.conf"
	install -Dm755 /dev/null "$pkgdir/usr/bin/made"
	ln -s made "$pkgdir/usr/bin/made2"
}
`)
	args := []string{"env", "HOME=" + dir, "PKGEXT=.pkg.tar.zst", "PKGDEST=" + dir, "makepkg", "--nodeps", "--noconfirm"}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 65534, 65534); err != nil {
			p.t.Fatal(err)
		}
		args = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, args...)
	}
	c := exec.Command(args[0], args[1:]...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		p.t.Fatalf("makepkg: %v\n%s", err, out)
	}
	file := filepath.Join(src, "made-1:1.2.3-4-any.pkg.tar.zst")
	put(p.t, file, string(get(p.t, filepath.Join(dir, filepath.Base(file)))))
	p.sign(file)
	return file
}
