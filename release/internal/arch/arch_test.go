package arch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/klauspost/compress/zstd"
)

// tree makes files in the given order and returns their folder.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // TempDir's follows the umask
		t.Fatal(err)
	}
	for _, n := range names {
		p := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("content of "+n+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func put(t *testing.T, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func sample(contents ...*files.Content) Package {
	return Package{Info: &nfpm.Info{
		Name: "sample", Arch: "amd64", Version: "1.0.0", Prerelease: "rc.1", Description: "a sample", License: "MIT",
		MTime: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), DisableGlobbing: true,
		Overridables: nfpm.Overridables{Contents: contents},
	}}
}

func mustWrite(t *testing.T, p Package) (string, Meta) {
	t.Helper()
	dir := t.TempDir()
	m, err := Write(t.Context(), dir, p)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, m.FileName()), m
}

// unpack reads a package with nothing of this package's.
func unpack(t *testing.T, path string) (headers []*tar.Header, contents map[string]string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	contents = map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		headers, contents[h.Name] = append(headers, h), string(b)
	}
}

func TestArchiveAndMtreeNameTheSame(t *testing.T) {
	p := sample(
		&files.Content{Source: tree(t, "b", "a a/é", "a#/="), Destination: "/usr/share/sample", Type: files.TypeTree},
		&files.Content{Source: put(t, "x = 1\n"), Destination: "/etc/sample.conf", Type: files.TypeConfig},
		&files.Content{Source: put(t, ""), Destination: "/usr/bin/sample", FileInfo: &files.ContentFileInfo{Mode: 0o4755, Owner: "daemon", Group: "kvm"}},
		&files.Content{Destination: "/var/lib/sample", Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: 0o1770}},
		&files.Content{Source: "../bin/sample", Destination: "/usr/lib/sample link", Type: files.TypeSymlink},
	)
	path, m := mustWrite(t, p)
	if got := filepath.Base(path); got != "sample-1.0.0rc1-1-x86_64.pkg.tar.zst" {
		t.Errorf("it is called %q", got)
	}
	headers, contents := unpack(t, path)
	var names []string
	for _, h := range headers {
		names = append(names, strings.TrimSuffix(h.Name, "/"))
		if !h.ModTime.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
			t.Errorf("%s has the time %v", h.Name, h.ModTime)
		}
	}
	want := []string{
		".BUILDINFO", ".MTREE", ".PKGINFO", "etc", "etc/sample.conf", "usr", "usr/bin", "usr/bin/sample", "usr/lib", "usr/lib/sample link",
		"usr/share", "usr/share/sample", "usr/share/sample/a a", "usr/share/sample/a a/é", "usr/share/sample/a#", "usr/share/sample/a#/=",
		"usr/share/sample/b", "var", "var/lib", "var/lib/sample",
	}
	if !slices.Equal(names, want) {
		t.Errorf("entries:\n%q\nwant\n%q", names, want)
	}
	z, err := gzip.NewReader(strings.NewReader(contents[".MTREE"]))
	if err != nil {
		t.Fatal(err)
	}
	mtree, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"./usr/bin/sample time=1767323045.0 uid=65534 gid=65534 mode=4755 type=file size=0 md5digest=d41d8cd98f00b204e9800998ecf8427e sha256digest=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		`./usr/share/sample/a\040a/\303\251 `, `./usr/share/sample/a\043/\075 `,
		`./usr/lib/sample\040link time=1767323045.0 uid=0 gid=0 mode=777 type=link link=../bin/sample`,
		"./var/lib/sample time=1767323045.0 uid=0 gid=0 mode=1770 type=dir",
	} {
		if !strings.Contains(string(mtree), "\n"+line) {
			t.Errorf("no line %q in\n%s", line, mtree)
		}
	}
	if got := strings.Count(string(mtree), "\n./"); got != len(want)-1 {
		t.Errorf(".MTREE has %d lines for %d entries without itself", got, len(want)-1)
	}
	bin := headers[slices.Index(names, "usr/bin/sample")]
	if bin.Mode != 0o4755 || bin.Uname != "daemon" || bin.Gname != "kvm" || bin.Uid != 65534 {
		t.Errorf("usr/bin/sample is %o of %s:%s", bin.Mode, bin.Uname, bin.Gname)
	}
	info := contents[".PKGINFO"]
	for _, line := range []string{
		"pkgname = sample", "pkgbase = sample", "xdata = pkgtype=pkg", "pkgver = 1.0.0rc1-1", "pkgdesc = a sample", "url = ",
		"builddate = 1767323045", "packager = Unknown Packager", "size = 53", "arch = x86_64", "license = MIT", "backup = etc/sample.conf",
	} {
		if !strings.Contains(info, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, info)
		}
	}
	if m.Name != "sample" || m.Version != "1.0.0rc1-1" || m.Size != 53 || !slices.Equal(m.Backup, []string{"etc/sample.conf"}) ||
		!slices.Contains(m.Files, "var/lib/sample/") || !slices.Contains(m.Files, "usr/share/sample/a a/é") || len(m.Files) != len(want)-3 {
		t.Errorf("it says of itself %+v", m)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode() != 0o644 {
		t.Errorf("the file is %v, %v", fi.Mode(), err)
	}
}

func TestSameBytesWhateverTheMachine(t *testing.T) {
	names := []string{"z", "a/b/c", "a/d", "m n"}
	pack := func(names []string) []byte {
		dir := tree(t, names...)
		p := sample(&files.Content{Source: dir, Destination: "/opt/x", Type: files.TypeTree})
		p.Install = []byte("post_install() {\n\t:\n}\n")
		before := len(p.Info.Contents)
		path, _ := mustWrite(t, p)
		if len(p.Info.Contents) != before || p.Info.Contents[0].FileInfo != nil {
			t.Error("the model was changed")
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	want := pack(names)
	slices.Reverse(names)
	local := time.Local
	defer func(n, mask int) { time.Local = local; runtime.GOMAXPROCS(n); syscall.Umask(mask) }(runtime.GOMAXPROCS(0), syscall.Umask(0o022))
	for i, zone := range []int{-12, 14} {
		time.Local = time.FixedZone("there", zone*3600)
		runtime.GOMAXPROCS(1 + 7*i)
		syscall.Umask(0)
		if !bytes.Equal(pack(names), want) {
			t.Errorf("zone %d, %d processors: other bytes", zone, 1+7*i)
		}
	}
	// The frame's header is the first thing another encoder would change.
	if !bytes.HasPrefix(want, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		t.Errorf("it starts with % x", want[:4])
	}
}

func TestScriptsOfTheModelBecomeFunctions(t *testing.T) {
	p := sample()
	p.Info.Scripts.PostInstall = put(t, "echo installed $1\n")
	p.Info.Scripts.PreRemove = put(t, "# nothing to do\n\n")
	p.Info.ArchLinux.Scripts.PostUpgrade = put(t, "echo \"$1 after $2\"")
	path, _ := mustWrite(t, p)
	_, contents := unpack(t, path)
	if got, want := contents[".INSTALL"], "post_install() {\necho installed $1\n}\npost_upgrade() {\necho \"$1 after $2\"\n}\n"; got != want {
		t.Errorf(".INSTALL is\n%s", got)
	}
	p.Info.Scripts.PostInstall, p.Info.ArchLinux.Scripts.PostUpgrade = "", ""
	path, _ = mustWrite(t, p)
	if _, contents = unpack(t, path); contents[".INSTALL"] != "" {
		t.Errorf("an empty scriptlet: %q", contents[".INSTALL"])
	}
}

func TestNfpmPacksWithIt(t *testing.T) {
	Register()
	defer nfpm.ClearPackagers()
	packager, err := nfpm.Get(Format)
	if err != nil {
		t.Fatal(err)
	}
	p := sample(&files.Content{Source: put(t, "x"), Destination: "/usr/bin/x"})
	var out bytes.Buffer
	if err := packager.Package(p.Info, &out); err != nil {
		t.Fatal(err)
	}
	m, err := ReadMeta(&out)
	if err != nil || m.FileName() != packager.ConventionalFileName(p.Info) {
		t.Errorf("%v, %v; its name is %q", m, err, packager.ConventionalFileName(p.Info))
	}
}

// atCall does something at the n-th time it is asked whether to stop.
type atCall struct {
	context.Context
	n  int
	do func()
}

func (c *atCall) Err() error {
	if c.n--; c.n == 0 {
		c.do()
	}
	return c.Context.Err()
}

func TestSourceThatChangesIsNoticed(t *testing.T) {
	for name, change := range map[string]func(p string) error{
		"longer":  func(p string) error { return os.WriteFile(p, []byte("before and more"), 0o644) },
		"shorter": func(p string) error { return os.Truncate(p, 3) },
		"other":   func(p string) error { return os.WriteFile(p, []byte("BEFORE"), 0o644) },
		"gone":    os.Remove,
		"a link": func(p string) error {
			return errors.Join(os.Rename(p, p+".old"), os.Symlink(p+".old", p))
		},
	} {
		t.Run(name, func(t *testing.T) {
			source, dir := put(t, "before"), t.TempDir()
			p := sample(&files.Content{Source: source, Destination: "/usr/share/x"})
			// Once for each of usr/, usr/share/ and x while it is planned; then it is
			// written: .BUILDINFO is asked for first.
			ctx := &atCall{t.Context(), 4, func() {
				if err := change(source); err != nil {
					t.Error(err)
				}
			}}
			_, err := Write(ctx, dir, p)
			if err == nil || !strings.Contains(err.Error(), source) {
				t.Errorf("error: %v", err)
			}
			nothing(t, dir)
			if ctx.n > 0 {
				t.Error("the source was never changed")
			}
		})
	}
}

func nothing(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// full takes n bytes.
type full struct{ n int }

func (f *full) Write(b []byte) (int, error) {
	if f.n -= len(b); f.n < 0 {
		return max(0, len(b)+f.n), syscall.ENOSPC
	}
	return len(b), nil
}

func TestWriteErrorAnywhereIsAnError(t *testing.T) {
	p := sample(&files.Content{Source: put(t, "x"), Destination: "/usr/bin/x"})
	var whole bytes.Buffer
	if err := (Packager{}).Package(p.Info, &whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole.Len() {
		if n%50 != 0 && n < whole.Len()-10 { // the last block most of all
			continue
		}
		if err := (Packager{}).Package(p.Info, &full{n}); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%d bytes of %d fit, and it says %v", n, whole.Len(), err)
		}
	}
}

func TestStoppedWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	if _, err := Write(&atCall{ctx, 6, stop}, dir, sample(&files.Content{Source: put(t, "x"), Destination: "/usr/bin/x"})); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	nothing(t, dir)
}
