package pacman

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// recorded is a root with the database that pacman 6.0.2 wrote of one package.
func recorded(t *testing.T) (*Manager, string) {
	t.Helper()
	l := layout.Layout{Root: filepath.Join(t.TempDir(), "root[1]*")} // no pattern
	if err := os.CopyFS(l.Path("/var/lib/pacman/local"), os.DirFS("testdata/local")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(l.Path("/etc/pacman.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	return New(l, nil), l.Path("/var/lib/pacman/local/hello-1-1")
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

func TestLookReadsWhatPacmanWrote(t *testing.T) {
	m, _ := recorded(t)
	p := look(t, m, "hello")
	if !p.Installed || p.Version != "1-1" || p.Broken != "" || p.Held != "" || len(p.Files) != 10 {
		t.Errorf("%+v", p)
	}
	want := database.File{
		Path: "/usr/bin/h", Kind: database.Regular, Size: 3,
		Sum: "2d27fbdf4e8ca207afbfa388ca9172fbcc6c70e534af2476b3b704f87debadcf",
	}
	config := false
	for _, f := range p.Files {
		config = config || f.Config && f.Path == "/etc/h.conf"
	}
	if !slices.Contains(p.Files, want) || !config {
		t.Errorf("%+v", p.Files)
	}
	for _, other := range []string{"hell", "hello-1", "hello-1-1", "h", "ALPM_DB_VERSION"} {
		if p := look(t, m, other); p.Installed {
			t.Errorf("%q: %+v", other, p)
		}
	}
}

func TestP02LookSeesWhatAKillLeft(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(dir string) error
		says string
	}{
		"no desc":    {func(d string) error { return os.Remove(d + "/desc") }, "hollow"},
		"empty desc": {func(d string) error { return os.Truncate(d+"/desc", 0) }, "hollow"},
		"cut desc":   {func(d string) error { return os.Truncate(d+"/desc", 16) }, "hollow"},
		"no files":   {func(d string) error { return os.Remove(d + "/files") }, "no list of files"},
		"cut files":  {func(d string) error { return os.Truncate(d+"/files", 60) }, "list of files in the database is cut"},
		"cut mtree":  {func(d string) error { return os.Truncate(d+"/mtree", 300) }, "mtree in the database is cut"},
		"nothing": {func(d string) error {
			_, err := os.ReadDir(d)
			for _, f := range []string{"desc", "files", "mtree"} {
				_ = os.Remove(filepath.Join(d, f))
			}
			return err
		}, "hollow"},
		"two entries": {func(d string) error { return os.Mkdir(filepath.Dir(d)+"/hello-2-1", 0o755) }, "2 entries"},
	} {
		m, dir := recorded(t)
		if err := c.harm(dir); err != nil {
			t.Fatal(err)
		}
		if p := look(t, m, "hello"); !p.Installed || !strings.Contains(p.Broken, c.says) {
			t.Errorf("%s: %+v, want %q", name, p, c.says)
		}
	}
}

func TestPackageWithoutMtreeIsKnownByItsList(t *testing.T) {
	m, dir := recorded(t)
	if err := os.Remove(dir + "/mtree"); err != nil {
		t.Fatal(err)
	}
	p := look(t, m, "hello")
	if p.Broken != "" || !slices.Contains(p.Files, database.File{Path: "/usr/bin/h", Size: -1}) ||
		!slices.Contains(p.Files, database.File{Path: "/usr/bin", Size: -1, Kind: database.Directory}) {
		t.Errorf("%+v", p)
	}
}

func TestConfigurationOfPacman(t *testing.T) {
	m, _ := recorded(t)
	etc := m.layout.Path("/etc")
	for _, c := range []struct{ conf, held string }{
		{"[options]\nIgnorePkg = other hel*\n", `IgnorePkg in "/etc/pacman.conf" names it; take it out there to let it change`},
		{"[options]\n#IgnorePkg = hello\n", ""},
		{"[core]\nIgnorePkg = hello\n", ""},
		{"[options]\nInclude = /etc/pacman.d/*.conf\n", `IgnorePkg in "/etc/pacman.d/hold.conf" names it; take it out there to let it change`},
		{"[options]\nInclude = /etc/pacman.conf\n", "more than 100 files"},
	} {
		put(t, etc+"/pacman.conf", c.conf)
		put(t, etc+"/pacman.d/hold.conf", "IgnorePkg=hello\n")
		p, err := m.Look("hello")
		if got := p.Held; err != nil && !strings.Contains(err.Error(), c.held) || err == nil && got != c.held {
			t.Errorf("%q: held %q, %v; want %q", c.conf, got, err, c.held)
		}
	}
	put(t, etc+"/pacman.conf", "[options]\nNoExtract = usr/share/* !usr/share/h/2\nNoUpgrade = usr/bin/h\n")
	var paths []string
	for _, f := range look(t, m, "hello").Files {
		if f.Kind == database.Regular {
			paths = append(paths, f.Path)
		}
		if f.Path == "/usr/bin/h" && !f.Config {
			t.Error("NoUpgrade is not seen")
		}
	}
	if got := strings.Join(paths, " "); got != "/etc/h.conf /usr/bin/h /usr/share/h/2" {
		t.Errorf("wanted are %s", got)
	}
}

func TestMtree(t *testing.T) {
	files := parseMtree([]byte("#mtree\n/set type=file mode=644\n./.PKGINFO size=1\n./a\\040b size=2 md5digest=0F\n/set type=dir\n./d\n/unset type\n" +
		"./l type=link link=../\\303\\244\n./../../etc/x type=dir\n./f type=fifo\nrubbish\n\n./.hidden/x size=3\n"))
	want := []database.File{
		{Path: "/a b", Kind: database.Regular, Size: 2, Sum: "0f"},
		{Path: "/d", Kind: database.Directory, Size: -1},
		{Path: "/l", Kind: database.Symlink, Size: -1, Target: "../ä"},
		{Path: "/etc/x", Kind: database.Directory, Size: -1},
		{Path: "/f", Size: -1},
		{Path: "/.hidden/x", Kind: database.Regular, Size: 3},
	}
	if !slices.Equal(files, want) {
		t.Errorf("%+v\nwant %+v", files, want)
	}
}

func FuzzEntry(f *testing.F) {
	for _, name := range []string{"desc", "files", "mtree"} {
		b, err := os.ReadFile("testdata/local/hello-1-1/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte("/set type=link\n./a link=\\4\n"))
	_ = w.Close()
	f.Add(z.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := filepath.Join(t.TempDir(), "hello-1-1")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"desc", "files", "mtree"} {
			put(t, filepath.Join(dir, name), string(b))
		}
		e, err := readEntry(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range e.wanted(&conf{}) {
			if !strings.HasPrefix(file.Path, "/") || strings.Contains(file.Path+"/", "/../") {
				t.Errorf("%q leads out of the root", file.Path)
			}
		}
		_ = e.broken()
	})
}
