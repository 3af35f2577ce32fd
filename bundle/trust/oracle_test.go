package trust

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// known are the versions whose answers stand in attempts; another's are printed
// and not held to.
var known = map[string]string{"pacman": "v6.0.2", "gpg": "2.2.40"}

// TestBesidePacmanAndGPG has real tools judge every attempt too, and prints the
// table. What we say is held to by TestPackageSignatureCountsOrSaysWhyNot as
// well; here it stands beside what a machine without us would do.
func TestBesidePacmanAndGPG(t *testing.T) {
	l := newLab(t)
	file := helloPackage(t)
	p := newPublisher(t, time.Now())
	l.trust(p)
	same := l.version("pacman") == known["pacman"] && l.version("gpg") == known["gpg"]
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SIGNATURE\tGPG\tPACMAN\tMESH-HOST\t")
	attempts := p.attempts(t, file)
	answers := make([]struct{ gpg, pacman bool }, len(attempts))
	var wait sync.WaitGroup
	turn := make(chan struct{}, 4)
	for i, a := range attempts {
		path := l.put(i, file, a.sig)
		wait.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			answers[i].gpg, answers[i].pacman = l.gpg(path), l.pacman(path, "Optional")
		})
	}
	wait.Wait()
	for i, a := range attempts {
		path, seen := l.path(i), answers[i]
		_, _, err := VerifyPackageFile(path, p.policy, Times{Clock: time.Now()})
		ours := "good"
		if err != nil {
			_, reason, _ := strings.Cut(err.Error(), "cannot verify \""+path+"\": ")
			ours = strings.ReplaceAll(reason, filepath.Dir(path)+"/", "")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.90s\t\n", a.name, said(seen.gpg), said(seen.pacman), ours)
		if (err == nil) != (a.want == nil) {
			t.Errorf("%s: we say %v", a.name, err)
		}
		if err == nil && !seen.pacman && a.name != expiredSince {
			t.Errorf("%s: we take what pacman refuses", a.name)
		}
		if same && (seen.gpg != a.gpg || seen.pacman != a.pacman) {
			t.Errorf("%s: gpg says %s and pacman %s, seen was %s and %s", a.name, said(seen.gpg), said(seen.pacman), said(a.gpg), said(a.pacman))
		}
	}
	w.Flush()
	t.Logf("pacman %s as Arch ships it, gpg %s:\n%s", l.version("pacman"), l.version("gpg"), table.String())
}

// TestUnsignedPackageIsInstalledByPacmanAsArchShipsIt, and not when the level
// for local files is the one we run pacman with.
func TestUnsignedPackageIsInstalledByPacmanAsArchShipsIt(t *testing.T) {
	l := newLab(t)
	path := l.put(0, helloPackage(t), nil)
	if !l.pacman(path, "Optional") {
		t.Error("pacman as Arch ships it refuses an unsigned local file")
	}
	if l.pacman(path, "Required") {
		t.Error("pacman takes an unsigned local file with LocalFileSigLevel = Required")
	}
	_, _, err := VerifyPackageFile(path, newPublisher(t, time.Now()).policy, Times{Clock: time.Now()})
	refused(t, err, ErrNoSignature, path+".sig")
}

func said(good bool) string {
	if good {
		return "good"
	}
	return "REFUSED"
}

// A pacmanLab is a root of its own for pacman and gpg.
type pacmanLab struct {
	t   *testing.T
	dir string
	// prefix runs pacman as somebody it takes for root.
	prefix []string
}

func newLab(t *testing.T) *pacmanLab {
	t.Helper()
	l := &pacmanLab{t: t}
	need := []string{"pacman", "gpg"}
	if os.Geteuid() != 0 {
		need, l.prefix = append(need, "fakeroot"), []string{"fakeroot", "--"}
	}
	for _, tool := range need {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	// A short path: gpg has sockets below it.
	dir, err := os.MkdirTemp("", "pgp")
	if err != nil {
		t.Fatal(err)
	}
	l.dir = dir
	if err := os.Mkdir(filepath.Join(dir, "gpg"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// gpg may have left an agent that serves this folder alone.
		_ = exec.Command("gpgconf", "--homedir", filepath.Join(dir, "gpg"), "--kill", "all").Run()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return l
}

func (l *pacmanLab) run(args ...string) (string, error) {
	l.t.Helper()
	c := exec.Command(args[0], args[1:]...)
	c.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "HOME=" + l.dir, "GNUPGHOME=" + filepath.Join(l.dir, "gpg")}
	out, err := c.CombinedOutput()
	return string(out), err
}

func (l *pacmanLab) version(tool string) string {
	out, err := l.run(tool, "--version")
	if err != nil {
		l.t.Fatal(err)
	}
	for f := range strings.FieldsSeq(out) {
		if v := strings.TrimPrefix(f, "v"); v[0] >= '0' && v[0] <= '9' && strings.Count(v, ".") == 2 {
			return f
		}
	}
	return "unknown"
}

// trust imports the keyring, and trusts every primary key in it for good.
func (l *pacmanLab) trust(p *publisher) {
	l.t.Helper()
	ring := filepath.Join(l.dir, "keyring.gpg")
	write(l.t, l.dir, "keyring.gpg", p.keyring)
	// gpg fails when it leaves out a part, as it must the subkey without binding.
	out, _ := l.run("gpg", "--batch", "--import", ring)
	var owner strings.Builder
	for _, id := range p.trusted {
		fmt.Fprintf(&owner, "%s:6:\n", strings.ToUpper(id))
		if _, err := l.run("gpg", "--batch", "--list-keys", id); err != nil {
			l.t.Fatalf("gpg did not take key %s:\n%s", id, out)
		}
	}
	write(l.t, l.dir, "ownertrust", []byte(owner.String()))
	if out, err := l.run("gpg", "--batch", "--import-ownertrust", filepath.Join(l.dir, "ownertrust")); err != nil {
		l.t.Fatal(out)
	}
}

// put lays a package and its signature (nil: none) into a folder of their own.
func (l *pacmanLab) put(i int, file, sig []byte) string {
	l.t.Helper()
	path := l.path(i)
	dir, name := filepath.Split(path)
	for _, level := range []string{"Optional", "Required"} {
		top := filepath.Join(dir, level)
		for _, d := range []string{"root", "db", "cache", "hooks"} {
			if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
				l.t.Fatal(err)
			}
		}
		write(l.t, top, "pacman.conf", []byte("[options]\nArchitecture = auto\nSigLevel = Required DatabaseOptional\nLocalFileSigLevel = "+level+"\n"))
	}
	write(l.t, dir, name, file)
	if sig != nil {
		write(l.t, dir, name+".sig", sig)
	}
	return path
}

func (l *pacmanLab) path(i int) string {
	return filepath.Join(l.dir, fmt.Sprint(i), "hello-1-1-any.pkg.tar.gz")
}

func (l *pacmanLab) gpg(path string) bool {
	_, err := l.run("gpg", "--batch", "--verify", path+".sig", path)
	return err == nil
}

// pacman reports whether pacman installs the package: into an empty root, with
// SigLevel = Required and the level for local files.
func (l *pacmanLab) pacman(path, local string) bool {
	l.t.Helper()
	top := filepath.Join(filepath.Dir(path), local)
	out, err := l.run(append(slices.Clip(l.prefix), "pacman", "-U", "--noconfirm", "--noprogressbar",
		"--root", filepath.Join(top, "root"), "--dbpath", filepath.Join(top, "db"), "--cachedir", filepath.Join(top, "cache"),
		"--hookdir", filepath.Join(top, "hooks"), "--logfile", filepath.Join(top, "log"),
		"--gpgdir", filepath.Join(l.dir, "gpg"), "--config", filepath.Join(top, "pacman.conf"), path)...)
	// The exit status says less than what is there afterwards.
	_, there := os.Stat(filepath.Join(top, "db/local/hello-1-1/desc"))
	if installed := there == nil; installed != (err == nil) || !installed && !strings.Contains(out, "signature") && !strings.Contains(out, "key missing from keyring") {
		l.t.Errorf("pacman and what it left do not agree, or it failed of something else: %v\n%s", err, out)
	}
	return there == nil
}

// helloPackage is a package of pacman's with one file.
func helloPackage(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range []struct{ name, text string }{
		{".PKGINFO", "pkgname = hello\npkgbase = hello\npkgver = 1-1\npkgdesc = hello\nbuilddate = 1700000000\nsize = 6\narch = any\nlicense = MIT\n"},
		{"hello", "hello\n"},
	} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
