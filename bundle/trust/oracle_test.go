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
	"time"
)

// known are the versions whose answers stand in attempts; another's are printed
// and not held to.
var known = map[string]string{"pacman": "v6.0.2", "gpg": "2.2.40"}

// TestBesidePacmanAndGPG has real tools judge every attempt too, and puts what
// they say into the table of verdicts. What we say is held to by
// TestPackageSignatureCountsOrSaysWhyNot as well; here it stands beside what a
// machine without us would do.
func TestBesidePacmanAndGPG(t *testing.T) {
	l := newLab(t)
	file := helloPackage(t)
	p := newPublisher(t, time.Now())
	l.trust(p)
	same := l.version("pacman") == known["pacman"] && l.version("gpg") == known["gpg"]
	attempts := p.attempts(t, file)
	seen := make([]struct{ gpg, pacman answer }, len(attempts))
	var wait sync.WaitGroup
	turn := make(chan struct{}, 4)
	for i, a := range attempts {
		path := l.put(i, file, a.sig)
		wait.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			seen[i].gpg, seen[i].pacman = l.gpg(path), l.pacman(path, "Optional")
		})
	}
	wait.Wait()
	for i, a := range attempts {
		path, seen := l.path(i), seen[i]
		_, _, err := VerifyPackageFile(path, p.policy, Times{Clock: time.Now()})
		l.verdict("gpg", a.name, seen.gpg, path, err)
		l.verdict("pacman", a.name, seen.pacman, path, err)
		if (err == nil) != (a.want == nil) {
			t.Errorf("%s: we say %v", a.name, err)
		}
		if err == nil && !seen.pacman.good && a.name != expiredSince {
			t.Errorf("%s: we take what pacman refuses", a.name)
		}
		if same && (seen.gpg.good != a.gpg || seen.pacman.good != a.pacman) {
			t.Errorf("%s: gpg %s and pacman %s, seen was %v and %v", a.name, seen.gpg.said, seen.pacman.said, a.gpg, a.pacman)
		}
	}
}

// TestUnsignedPackageIsInstalledByPacmanAsArchShipsIt, and not when the level
// for local files is the one we run pacman with.
func TestUnsignedPackageIsInstalledByPacmanAsArchShipsIt(t *testing.T) {
	l := newLab(t)
	path := l.put(0, helloPackage(t), nil)
	_, _, err := VerifyPackageFile(path, newPublisher(t, time.Now()).policy, Times{Clock: time.Now()})
	refused(t, err, ErrNoSignature, path+".sig")
	for level, good := range map[string]bool{"Optional": true, "Required": false} {
		a := l.pacman(path, level)
		l.verdict("pacman", "unsigned local file, LocalFileSigLevel = "+level, a, path, err)
		if a.good != good {
			t.Errorf("an unsigned local file with LocalFileSigLevel = %s: pacman %s", level, a.said)
		}
	}
}

// An answer is whether a tool takes the package, and how it says so.
type answer struct {
	good bool
	said string
}

// verdict puts a case into the table that lab/testreport prints of all packages.
func (l *pacmanLab) verdict(tool, name string, theirs answer, path string, ours error) {
	said := "accepts"
	if ours != nil {
		_, reason, _ := strings.Cut(ours.Error(), "cannot verify \""+path+"\": ")
		said = "refuses: " + strings.ReplaceAll(reason, filepath.Dir(path)+"/", "")
	}
	l.t.Attr("verdict", strings.Join([]string{tool + " " + l.version(tool), name, theirs.said, said}, " | "))
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

// refusals are the words of gpg's status lines (doc/DETAILS of GnuPG) that say why
// a signature does not count, the most telling first.
var refusals = []string{"BADSIG", "NO_PUBKEY", "REVKEYSIG", "EXPKEYSIG", "EXPSIG", "ERRSIG", "NODATA", "BADARMOR", "UNEXPECTED"}

func (l *pacmanLab) gpg(path string) answer {
	out, err := l.run("gpg", "--batch", "--status-fd", "1", "--verify", path+".sig", path)
	said := "accepts"
	if err != nil {
		said = "refuses: " + lastLine(out)
	}
	for _, word := range refusals {
		if strings.Contains(out, "[GNUPG:] "+word+" ") || strings.Contains(out, "[GNUPG:] "+word+"\n") {
			// gpg ends well with some of these, and leaves it to its caller.
			said, _, _ = strings.Cut(said, ":")
			said += ": " + word
			break
		}
	}
	return answer{err == nil, said}
}

// pacman has pacman install the package: into an empty root, with SigLevel =
// Required and the level for local files.
func (l *pacmanLab) pacman(path, local string) answer {
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
	if there == nil {
		return answer{true, "installs"}
	}
	said := lastLine(out)
	for line := range strings.Lines(out) {
		// It would look for a key it misses, and says first that it may not.
		if why, is := strings.CutPrefix(line, "error: "); is && !strings.Contains(why, "keyring is not writable") {
			said = strings.TrimSpace(strings.ReplaceAll(why, path, filepath.Base(path)))
			break
		}
	}
	return answer{false, "refuses: " + said}
}

// lastLine is the last line for people.
func lastLine(out string) (last string) {
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[GNUPG:]") {
			last = line
		}
	}
	return last
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
