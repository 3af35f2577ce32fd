//go:build machine

package packages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// A repository is what a machine is configured to get packages from.
type repository struct {
	// publish replaces what is in it.
	publish func(files ...string)
	// refresh is a person who has the machine look what is in it.
	refresh func()
}

func pacmanRepository(w *world) repository {
	dir := w.TempDir()
	put(w, w.l.Path("/etc/pacman.conf"), "[options]\nArchitecture = auto\nSigLevel = Never\n[mine]\nServer = file://"+dir+"\n", 0o644)
	return repository{
		publish: func(files ...string) {
			empty(w, dir)
			for i, f := range files {
				name := fmt.Sprintf("%d.pkg.tar.zst", i)
				tool(w, "/", "cp", f, filepath.Join(dir, name))
				tool(w, dir, "repo-add", "-q", "mine.db.tar.gz", name)
			}
		},
		refresh: func() { w.byHand(append(pacmanLine(w.l), "-Sy")) },
	}
}

func aptRepository(w *world) repository {
	dir := w.TempDir()
	put(w, w.l.Path("/etc/apt/sources.list"), "deb [trusted=yes] copy:"+dir+" ./\n", 0o644)
	conf := filepath.Join(w.TempDir(), "apt.conf")
	put(w, conf, fmt.Sprintf("Dir %q;\nDir::State::status %q;\nAPT::Sandbox::User \"root\";\n", w.l.Root, w.l.Path("/var/lib/dpkg/status")), 0o644)
	return repository{
		publish: func(files ...string) {
			empty(w, dir)
			for i, f := range files {
				tool(w, "/", "cp", f, filepath.Join(dir, fmt.Sprintf("%d.deb", i)))
			}
			tool(w, dir, "sh", "-c", "dpkg-scanpackages -m . > Packages 2>/dev/null")
		},
		refresh: func() { tool(w, "/", "env", "APT_CONFIG="+conf, "apt-get", "update") },
	}
}

func empty(t testing.TB, dir string) {
	t.Helper()
	old, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
}

func named(w *world, name, version string) string {
	if version != "" {
		return fmt.Sprintf(`{"type":"package","name":%q,"version":%q}`, name, version)
	}
	return fmt.Sprintf(`{"type":"package","name":%q}`, name)
}

// What has no source comes from where the machine gets its packages, as it knows
// them: nothing else is upgraded for it, and no lists are fetched, after which a
// single package would not fit the others (a partial upgrade).
func TestAPackageWithoutASourceComesFromTheMachinesRepositories(t *testing.T) {
	for _, c := range []struct {
		sort
		repository  func(*world) repository
		none, lists string
	}{
		{pacmanSort, pacmanRepository, "target not found: hello=3-1", `by "pacman -Syu"`},
		{dpkgSort, aptRepository, "Version '3-1' for 'hello' was not found", `by "apt-get update"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.sort)
			r := c.repository(w)
			needy := recipe{name: "needy", version: "1-1", files: map[string]string{"usr/bin/needy": "x"}, depends: "hello"}
			r.publish(w.file(hello("1")), w.file(needy))
			any, one, two := want(w, named(w, "hello", "")), want(w, named(w, "hello", "1-1")), want(w, named(w, "hello", "2-1"))
			w.fails(any, nil, "hello", c.lists)
			r.refresh()
			rec := w.apply(any, nil)
			w.text("/usr/bin/hello", "hello 1\n")
			w.same(one, &rec)

			// There is a newer one: it comes when it is declared, and not before.
			r.publish(w.file(hello("1")), w.file(hello("2")), w.file(needy))
			w.same(any, &rec)
			w.fails(two, &rec, "hello")
			w.text("/usr/bin/hello", "hello 1\n")
			r.refresh()
			w.same(any, &rec)
			w.apply(want(w, named(w, "needy", "")), nil)
			w.text("/usr/bin/hello", "hello 1\n") // which is good enough for it
			rec = w.apply(two, &rec)
			w.text("/usr/bin/hello", "hello 2\n")
			w.fails(want(w, named(w, "hello", "3-1")), &rec, c.none, c.lists)
			w.fails(want(w, named(w, "nothere", "")), nil, "nothere", c.lists)

			// One that the lists name and the repository has no more.
			r.publish(w.file(hello("1")))
			w.byHand(c.sort.remove(w.l, "needy"))
			tool(t, "/", "sh", "-c", "rm -f "+w.l.Path("/var/cache/pacman/pkg")+"/* "+w.l.Path("/var/cache/apt/archives")+"/*.deb")
			w.fails(want(w, named(w, "needy", "")), nil, c.lists)
			w.text("/usr/bin/hello", "hello 2\n")

			for _, run := range w.runs {
				for _, arg := range strings.Fields(run) {
					if arg == "update" || strings.Contains(arg, "upgrade") && arg != "--no-upgrade" || strings.HasPrefix(arg, "-S") && strings.ContainsAny(arg, "yu") {
						t.Errorf("the machine's lists were changed, or all was upgraded: %s", run)
					}
				}
			}
			w.remove(rec, declaration.Removed)
			w.gone("/usr/bin/hello")
			w.tidy()
		})
	}
}
