package dpkg

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// recorded is a root with what dpkg 1.21 wrote of three packages.
func recorded(t *testing.T) *Manager {
	t.Helper()
	l := layout.Layout{Root: t.TempDir()}
	if err := os.CopyFS(l.Path(admin), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{".list", ".md5sums"} { // a ":" is not for the names of our files
		if err := os.Rename(l.Path(admin+"/info/libgcc-s1.amd64"+suffix), l.Path(admin+"/info/libgcc-s1:amd64"+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{admin + "/updates", "/etc/dpkg/dpkg.cfg.d"} {
		if err := os.MkdirAll(l.Path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return New(l, nil)
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func look(t *testing.T, m *Manager, name string) database.Package {
	t.Helper()
	p, err := m.Look(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func has(p database.Package, path string) bool {
	return slices.ContainsFunc(p.Files, func(f database.File) bool { return f.Path == path })
}

func TestLookReadsWhatDpkgWrote(t *testing.T) {
	m := recorded(t)
	p := look(t, m, "hostname")
	if !p.Installed || p.Version != "3.23+nmu1" || p.Broken != "" || p.Held != "" || len(p.Files) != 19 {
		t.Errorf("%+v", p)
	}
	if want := (database.File{Path: "/bin/hostname", Kind: database.Regular, Size: -1, Sum: "84663f46a29817d9b0641f960a551cdb"}); !slices.Contains(p.Files, want) {
		t.Errorf("%+v", p.Files)
	}
	configs := 0
	for _, f := range look(t, m, "adduser").Files {
		if f.Config {
			configs++
		}
	}
	if configs != 2 {
		t.Errorf("adduser has %d configuration files, want 2", configs)
	}
	if p := look(t, m, "libgcc-s1"); !p.Installed || p.Broken != "" || !has(p, "/lib/x86_64-linux-gnu/libgcc_s.so.1") {
		t.Errorf("%+v", p)
	}
	for _, other := range []string{"host", "ostname", "nothing", "libgcc"} {
		if p := look(t, m, other); p.Installed {
			t.Errorf("%q: %+v", other, p)
		}
	}
}

func TestStates(t *testing.T) {
	for status, want := range map[string]database.Package{
		"install ok installed":                {Installed: true},
		"hold ok installed":                   {Installed: true, Held: `it is on hold; "apt-mark unhold hostname" lets it change`},
		"install ok triggers-pending":         {Installed: true},
		"install ok triggers-awaited":         {Installed: true},
		"install ok half-configured":          {Installed: true, Broken: "is half-configured"},
		"install ok unpacked":                 {Installed: true, Broken: "is unpacked"},
		"install reinstreq half-installed":    {Installed: true, Broken: "is half-installed, and must be installed again (reinstreq)"},
		"deinstall ok config-files":           {},
		"purge ok not-installed":              {},
		"deinstall reinstreq half-configured": {Installed: true, Broken: "is half-configured, and must be installed again (reinstreq)"},
	} {
		m := recorded(t)
		b, err := os.ReadFile(m.path("status"))
		if err != nil {
			t.Fatal(err)
		}
		put(t, m.path("status"), strings.Replace(string(b), "Status: install ok installed", "Status: "+status, 1)) // hostname's is the first
		p := look(t, m, "hostname")
		if p.Installed != want.Installed || p.Broken != want.Broken || p.Held != want.Held {
			t.Errorf("%s: %+v, want %+v", status, p, want)
		}
	}
}

func TestTheJournalIsNewerThanTheStatus(t *testing.T) {
	m := recorded(t)
	stanza := func(state string) string {
		return "Package: hostname\nStatus: " + state + "\nArchitecture: amd64\nVersion: 9\n\n"
	}
	put(t, m.path("updates/0001"), stanza("install reinstreq half-installed"))
	put(t, m.path("updates/0002"), stanza("install ok unpacked"))
	put(t, m.path("updates/tmp.i"), stanza("install ok installed"))
	if p := look(t, m, "hostname"); p.Version != "9" || p.Broken != "is unpacked" {
		t.Errorf("%+v", p)
	}
}

func TestWhatIsLeftOutOrLiesElsewhere(t *testing.T) {
	m := recorded(t)
	put(t, m.layout.Path("/etc/dpkg/dpkg.cfg.d/docker"), "# x\npath-exclude=/usr/share/doc/*\npath-exclude /usr/share/man/*\npath-include=/usr/share/doc/*/copyright\n")
	put(t, m.path("diversions"), "/bin/hostname\n/bin/hostname.real\nother\n/bin/domainname\n/bin/x\nhostname\n")
	p := look(t, m, "hostname")
	for path, want := range map[string]bool{
		"/usr/share/doc/hostname/copyright": true, "/usr/share/doc/hostname/changelog.gz": false, "/usr/share/man/man1/hostname.1.gz": false,
		"/bin/hostname": false, "/bin/hostname.real": true, "/bin/domainname": true, "/bin/x": false,
	} {
		if has(p, path) != want {
			t.Errorf("%s: %v, want %v", path, !want, want)
		}
	}
}

func TestListThatIsGone(t *testing.T) {
	m := recorded(t)
	if err := os.Remove(m.path("info/hostname.list")); err != nil {
		t.Fatal(err)
	}
	if p := look(t, m, "hostname"); !p.Installed || !strings.Contains(p.Broken, "list of files is missing") {
		t.Errorf("%+v", p)
	}
}

func FuzzStatus(f *testing.F) {
	b, err := os.ReadFile("testdata/status")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("Package: hostname\nConffiles:\n x\n a b 0123456789abcdef0123456789abcdef obsolete\n\nXPackage: hostname\nPackage: hostname\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for s := range stanzas(b, "hostname") {
			if s.get("Package") != "hostname" {
				t.Errorf("%q", s.fields)
			}
			for path := range s.configs() {
				if !strings.HasPrefix(path, "/") {
					t.Errorf("%q", path)
				}
			}
		}
	})
}
