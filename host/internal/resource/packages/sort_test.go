//go:build machine

package packages

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/command"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/dpkg"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/pacman"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A sort is a package manager with what makes packages for it and what a person
// would do with it by hand.
type sort struct {
	name string
	// needs are the programs that must be here.
	needs   []string
	manager func(layout.Layout, command.Runner) Manager
	// prepare makes what a root needs besides a shell.
	prepare func(t testing.TB, l layout.Layout)
	// pack makes a package from the tree in dir, and returns its file.
	pack func(t testing.TB, dir string, p recipe) string
	// install and remove are what a person would call.
	install func(l layout.Layout, file string) []string
	remove  func(l layout.Layout, name string) []string
	// hold and unhold are what an administrator does.
	hold, unhold func(t testing.TB, l layout.Layout)
	// dist is what is put beside changed configuration.
	dist string
	// taken makes a process that has the lock until free is called.
	taken func(t testing.TB, l layout.Layout) (pid int, free func())
	// words are what it says, by what it says it of.
	words map[string]string
}

// A recipe is a package.
type recipe struct {
	name, version string
	files         map[string]string
	config        string // content of /etc/NAME.conf, if any
	depends       string
	after         string // shell, after it was installed
}

const epoch = "1700000000"

func tool(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "SOURCE_DATE_EPOCH=" + epoch, "DEBIAN_FRONTEND=noninteractive", "HOME=/dev/null"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func put(t testing.TB, name, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}

// tree lays the files of a package down, always the same bytes and times.
func tree(t testing.TB, r recipe) string {
	dir := t.TempDir()
	for name, text := range r.files {
		put(t, filepath.Join(dir, name), text, 0o755)
	}
	if r.config != "" {
		put(t, filepath.Join(dir, "etc", r.name+".conf"), r.config, 0o644)
	}
	return dir
}

var pacmanSort = sort{
	name: "pacman", needs: []string{"pacman", "bsdtar", "zstd", "gpg"},
	manager: func(l layout.Layout, r command.Runner) Manager { return pacman.New(l, r) },
	prepare: func(t testing.TB, l layout.Layout) {
		put(t, l.Path("/etc/pacman.conf"), "[options]\nArchitecture = auto\nSigLevel = Never\nLocalFileSigLevel = Never\n", 0o644)
		put(t, l.Path("/var/lib/pacman/local/ALPM_DB_VERSION"), "9\n", 0o644)
		for _, d := range []string{"/var/cache/pacman/pkg", "/var/lib/pacman/sync", "/etc/pacman.d/hooks", "/var/log"} {
			if err := os.MkdirAll(l.Path(d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	},
	pack: func(t testing.TB, dir string, p recipe) string {
		info := fmt.Sprintf("pkgname = %s\npkgbase = %[1]s\npkgver = %s\npkgdesc = x\nurl = x\nbuilddate = %s\npackager = x\nsize = 1\narch = any\n", p.name, p.version, epoch)
		if p.depends != "" {
			info += "depend = " + p.depends + "\n"
		}
		if p.config != "" {
			info += "backup = etc/" + p.name + ".conf\n"
		}
		put(t, dir+"/.PKGINFO", info, 0o644)
		if p.after != "" {
			put(t, dir+"/.INSTALL", "post_install() {\n"+p.after+"\n}\npost_upgrade() {\nfirst=no\n"+p.after+"\n}\n", 0o644)
		}
		file := t.TempDir() + "/" + p.name + ".pkg.tar.zst"
		tool(t, dir, "sh", "-c", `find . -exec touch -h -d @`+epoch+` {} +
			bsdtar -czf .MTREE --format=mtree --options='gzip:!timestamp,!all,use-set,type,uid,gid,mode,time,size,md5,sha256,link' .PKGINFO $(ls -A | grep -v '^\.[A-Z]')
			touch -d @`+epoch+` .MTREE; bsdtar --uid 0 --gid 0 -cf - $(ls -A | LC_ALL=C sort) | zstd -q > `+file)
		return file
	},
	install: func(l layout.Layout, file string) []string { return append(pacmanLine(l), "-U", file) },
	remove:  func(l layout.Layout, name string) []string { return append(pacmanLine(l), "-R", name) },
	hold: func(t testing.TB, l layout.Layout) {
		put(t, l.Path("/etc/pacman.conf"), "[options]\nArchitecture = auto\nSigLevel = Never\nLocalFileSigLevel = Never\nIgnorePkg = other hel*\n", 0o644)
	},
	unhold: func(t testing.TB, l layout.Layout) {
		put(t, l.Path("/etc/pacman.conf"), "[options]\nArchitecture = auto\nSigLevel = Never\nLocalFileSigLevel = Never\n", 0o644)
	},
	dist: ".pacnew",
	taken: func(t testing.TB, l layout.Layout) (int, func()) {
		lock := l.Path("/var/lib/pacman/db.lck")
		return holder(t, "exec 9>"+lock+"; echo; read x; rm "+lock)
	},
	words: map[string]string{
		"held": `IgnorePkg in "/etc/pacman.conf" names it; take it out there to let it change`, "dependency": "unable to satisfy dependency 'nothere' required by hello",
		"script": "the scriptlet says why", "full": "could not extract ", "needed": "required by",
	},
}

func pacmanLine(l layout.Layout) []string {
	return []string{
		"pacman", "--noconfirm", "--root", l.Root, "--dbpath", l.Path("/var/lib/pacman"), "--config", l.Path("/etc/pacman.conf"),
		"--cachedir", l.Path("/var/cache/pacman/pkg"), "--gpgdir", l.Path("/etc/pacman.d/gnupg"), "--logfile", l.Path("/var/log/pacman.log"),
	}
}

var dpkgSort = sort{
	name: "dpkg", needs: []string{"dpkg", "apt-get", "dpkg-deb", "python3"},
	manager: func(l layout.Layout, r command.Runner) Manager { return dpkg.New(l, r) },
	prepare: func(t testing.TB, l layout.Layout) {
		for _, d := range []string{
			"/var/lib/dpkg/info", "/var/lib/dpkg/updates", "/var/lib/dpkg/triggers", "/etc/apt/apt.conf.d", "/etc/apt/sources.list.d", "/etc/apt/preferences.d",
			"/var/lib/apt/lists/partial", "/var/cache/apt/archives/partial", "/var/log/apt",
		} {
			if err := os.MkdirAll(l.Path(d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range []string{"/var/lib/dpkg/status", "/var/lib/dpkg/available", "/etc/apt/sources.list"} {
			put(t, l.Path(f), "", 0o644)
		}
	},
	pack: func(t testing.TB, dir string, p recipe) string {
		control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n", p.name, p.version)
		if p.depends != "" {
			control += "Depends: " + p.depends + "\n"
		}
		put(t, dir+"/DEBIAN/control", control, 0o644)
		if p.config != "" {
			put(t, dir+"/DEBIAN/conffiles", "/etc/"+p.name+".conf\n", 0o644)
		}
		if p.after != "" {
			put(t, dir+"/DEBIAN/postinst", "#!/bin/sh\nset -e\n[ -z \"$2\" ] || first=no\n"+p.after+"\n", 0o755)
		}
		file := t.TempDir() + "/" + p.name + ".deb"
		tool(t, dir, "sh", "-c", `find . -path ./DEBIAN -prune -o -path ./etc -prune -o -type f -print | cut -c3- | LC_ALL=C sort | xargs -r md5sum > DEBIAN/md5sums
			find . -exec touch -h -d @`+epoch+` {} +; dpkg-deb --root-owner-group -b . `+file)
		return file
	},
	install: func(l layout.Layout, file string) []string { return []string{"dpkg", "--root=" + l.Root, "-i", file} },
	remove:  func(l layout.Layout, name string) []string { return []string{"dpkg", "--root=" + l.Root, "-r", name} },
	hold: func(t testing.TB, l layout.Layout) {
		tool(t, "/", "sh", "-c", "echo hello hold | dpkg --root="+l.Root+" --set-selections")
	},
	unhold: func(t testing.TB, l layout.Layout) {
		tool(t, "/", "sh", "-c", "echo hello install | dpkg --root="+l.Root+" --set-selections")
	},
	dist: ".dpkg-dist",
	taken: func(t testing.TB, l layout.Layout) (int, func()) {
		return holder(t, "exec python3 -c 'import fcntl,sys; f=open(\""+l.Path("/var/lib/dpkg/lock-frontend")+"\",\"a+\"); fcntl.lockf(f,fcntl.LOCK_EX); print(flush=True); sys.stdin.read(1)'")
	},
	words: map[string]string{
		"held": `it is on hold; "apt-mark unhold hello" lets it change`, "dependency": "hello : Depends: nothere but it is not installable", "script": "returned error exit status 1", "full": "No space left", "needed": "depends on hello",
	},
}

var sorts = []sort{pacmanSort, dpkgSort}
