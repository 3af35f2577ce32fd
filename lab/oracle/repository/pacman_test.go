package repository

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// A machine is a root for pacman, which asks for a signature of everything.
type machine struct {
	t    testing.TB
	dir  string
	conf string
}

func (p *publisher) machine(server string) *machine {
	p.t.Helper()
	m := &machine{t: p.t, dir: p.t.TempDir()}
	for _, d := range []string{"root", "db", "cache", "hooks"} {
		if err := os.Mkdir(filepath.Join(m.dir, d), 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
	gpgdir, err := os.MkdirTemp("/tmp", "gpg")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		exec.Command("gpgconf", "--homedir", gpgdir, "--kill", "all").Run()
		os.RemoveAll(gpgdir)
	})
	put(p.t, filepath.Join(gpgdir, "pubring.gpg"), "") // pacman looks for this name
	run(p.t, nil, "gpg", "--homedir", gpgdir, "--batch", "--import", filepath.Join(p.keys, "package.pub.asc"))
	c := exec.Command("gpg", "--homedir", gpgdir, "--batch", "--import-ownertrust")
	c.Stdin = strings.NewReader(p.fingerprint() + ":6:\n")
	if out, err := c.CombinedOutput(); err != nil {
		p.t.Fatalf("gpg --import-ownertrust: %v\n%s", err, out)
	}
	m.conf = filepath.Join(m.dir, "pacman.conf")
	put(p.t, m.conf, "[options]\nRootDir = "+m.dir+"/root\nDBPath = "+m.dir+"/db\nCacheDir = "+m.dir+"/cache\nLogFile = "+m.dir+"/log\nGPGDir = "+gpgdir+
		"\nHookDir = "+m.dir+"/hooks\nArchitecture = x86_64\nSigLevel = Required DatabaseRequired\n\n[nox-mesh]\nServer = "+server+"\n")
	return m
}

func (p *publisher) fingerprint() string {
	for line := range strings.Lines(p.gpg("--list-keys", "--with-colons")) {
		if f := strings.Split(line, ":"); f[0] == "fpr" {
			return f[9]
		}
	}
	p.t.Fatal("gpg has no key")
	return ""
}

func (m *machine) pacman(args ...string) (string, error) {
	c := exec.Command("pacman", append([]string{"--config", m.conf, "--noconfirm"}, args...)...)
	c.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "http_proxy=", "no_proxy=*")
	out, err := c.CombinedOutput()
	return string(out), err
}

func (m *machine) must(args ...string) string {
	m.t.Helper()
	out, err := m.pacman(args...)
	if err != nil {
		m.t.Fatalf("pacman %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func needPacman(t *testing.T) {
	t.Helper()
	need(t, "pacman")
	if os.Geteuid() != 0 {
		t.Skip("pacman wants root")
	}
}

// serve serves a directory over HTTP on the loopback.
func serve(t *testing.T, dir string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.FileServer(http.Dir(dir))}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	return "http://" + l.Addr().String()
}

func TestPacmanInstallsFromIt(t *testing.T) {
	needPacman(t)
	p := newPublisher(t)
	src, top := t.TempDir(), t.TempDir()
	repo, www := filepath.Join(top, "repo"), filepath.Join(top, "www", "x86_64")
	for _, r := range []recipe{
		{name: "lib", version: "1:2.0-1", arch: "x86_64", info: "pkgdesc = a library\nlicense = MIT\n", files: []string{"usr/", "usr/lib/", "usr/lib/libx"}},
		{name: "web", version: "1.0.0rc1-1", info: "pkgdesc = für alle\nlicense = MIT\ndepend = lib>=1:2\n", files: []string{"usr/", "usr/share/", "usr/share/web"}},
	} {
		p.add(repo, p.pack(src, r))
	}
	p.mesh("repo", "publish", "--trust", p.keys, "--to", www, repo)
	for name, server := range map[string]string{"file": "file://" + www, "http": serve(t, filepath.Dir(www)) + "/$arch"} {
		t.Run(name, func(t *testing.T) {
			p := *p
			p.t = t
			m := p.machine(server)
			m.must("-Sy")
			if out := m.must("-Si", "web"); !strings.Contains(out, "für alle") || !strings.Contains(out, "1.0.0rc1-1") || !strings.Contains(out, "Signature") {
				t.Errorf("pacman -Si says\n%s", out)
			}
			m.must("-S", "web")
			if got := m.must("-Q"); got != "lib 1:2.0-1\nweb 1.0.0rc1-1\n" {
				t.Errorf("installed: %s", got)
			} else {
				tool.Verdict(t, "pacman", "repository by "+name+": -Sy, -S web", "installs: "+strings.Join(strings.Split(strings.TrimSpace(got), "\n"), ", "), p.listed(www))
			}
			m.must("-Fy")
			if out := m.must("-F", "usr/share/web"); !strings.Contains(out, "nox-mesh/web 1.0.0rc1-1") {
				t.Errorf("pacman -F says %s", out)
			} else {
				first, _, _ := strings.Cut(out, "\n")
				tool.Verdict(t, "pacman", "repository by "+name+": -F usr/share/web", "finds: "+first,
					"in it: "+strings.Join(strings.Fields(run(t, nil, "bsdtar", "-xOf", filepath.Join(www, "nox-mesh.files"), "web-1.0.0rc1-1/files")), " "))
			}
		})
	}
	// The release follows, and pacman sees it as an upgrade.
	m := p.machine("file://" + www)
	m.must("-Sy", "web")
	p.add(repo, p.pack(src, recipe{name: "web", version: "1.0.0-1", info: "pkgdesc = web\nlicense = MIT\ndepend = lib\n"}))
	p.mesh("repo", "publish", "--trust", p.keys, "--to", www, repo)
	m.must("-Syu")
	got := m.must("-Q", "web")
	if got != "web 1.0.0-1\n" {
		t.Errorf("after -Syu: %s", got)
	}
	tool.Verdict(t, "pacman", "-Syu when 1.0.0 follows 1.0.0rc1", "has: "+strings.TrimSpace(got), p.listed(www))
}

// TestPacmanRefusesWhatWeRefuse spoils a published repository: pacman with all
// signatures required and mesh-release refuse the same.
func TestPacmanRefusesWhatWeRefuse(t *testing.T) {
	needPacman(t)
	p := newPublisher(t)
	src := t.TempDir()
	const file = "web-1-1-any.pkg.tar.zst"
	pkg := p.pack(src, recipe{name: "web", version: "1-1", info: "pkgdesc = w\nlicense = MIT\n", files: []string{"usr/", "usr/w"}})
	evil := p.pack(t.TempDir(), recipe{name: "web", version: "1-1", info: "pkgdesc = w\nlicense = MIT\n", files: []string{"usr/", "usr/w", "usr/x"}})
	for name, spoil := range map[string]func(dir string){
		"nothing":                  func(string) {},
		"a bit of the database":    func(dir string) { flip(t, filepath.Join(dir, "nox-mesh.db")) },
		"the database's signature": func(dir string) { os.Remove(filepath.Join(dir, "nox-mesh.db.sig")) },
		"a bit of the package":     func(dir string) { flip(t, filepath.Join(dir, file)) },
		"another signed package": func(dir string) {
			os.Remove(filepath.Join(dir, file))
			put(t, filepath.Join(dir, file), string(get(t, evil)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := *p
			p.t = t
			repo, www := p.add(filepath.Join(t.TempDir(), "repo"), pkg), filepath.Join(t.TempDir(), "www")
			p.mesh("repo", "publish", "--trust", p.keys, "--to", www, repo)
			spoil(www)
			m := p.machine("file://" + www)
			out, err := m.pacman("-Sy", "web")
			if _, is := m.pacman("-Q", "web"); (err == nil) != (name == "nothing") || (is == nil) != (name == "nothing") {
				t.Errorf("pacman: %v\n%s", err, out)
			}
			publish := []string{"repo", "publish", "--trust", p.keys, "--to", filepath.Join(t.TempDir(), "again"), www}
			theirs, ours := "installs", "accepts"
			if err != nil {
				theirs = refusal(out, www)
			}
			if name == "nothing" {
				p.mesh(publish...)
			} else {
				ours = refusal(p.refused(publish...), www)
			}
			tool.Verdict(t, "pacman", "repository, spoiled: "+name, theirs, ours)
		})
	}
}
