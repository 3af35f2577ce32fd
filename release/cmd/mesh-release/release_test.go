package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/attest"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

const testPassphrase = "correct horse"

// mesh runs mesh-release here and returns what it printed.
func mesh(t *testing.T, want fault.Kind, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	err := run(context.Background(), args, cli.Stdio{In: strings.NewReader(""), Out: &out, Err: io.Discard})
	if fault.KindOf(err) != want {
		t.Fatalf("mesh-release %s: %v, want exit code %d\n%s", strings.Join(args, " "), err, want, &out)
	}
	if err != nil {
		out.WriteString(err.Error())
	}
	return out.String()
}

// TestARelease builds one release of a small source tree; each promise is held on
// a copy of it.
func TestARelease(t *testing.T) {
	small(t)
	base, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, promise := range map[string]func(*testing.T){
		"a flipped byte is found wherever it is":           oneFlippedByte,
		"a tarball is read by its manifest":                tarballByManifest,
		"what does not belong together is no release":      notTogether,
		"what is stated is what is packed":                 stated,
		"built again it is the same bytes, or one is told": builtAgain,
		"programs compiled by others give the same":        packed,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, "keys"), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			promise(t)
		})
	}
}

// small goes to a new directory with a small source tree ("src"), keys ("keys")
// and a release of it for x86_64 ("dist").
func small(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not here")
	}
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	script, err := txtar.ParseFile("testdata/script/build.txtar")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	put := func(name string, content []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range script.Files {
		if strings.HasPrefix(f.Name, "src/") {
			put(f.Name, f.Data)
		}
	}
	for _, name := range []string{".goreleaser.yaml", "LICENSE", "release/recipes/first-node/bundle.toml", "release/recipes/first-node/control-plane.json"} {
		put("src/"+name, read(t, filepath.Join(repo, name)))
	}
	put("secret", []byte(testPassphrase+"\n"))
	secret, err := filepath.Abs("secret")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOX_PASSPHRASE_FILE", secret)
	mesh(t, 0, "keys", "init", "keys")
	buildTo(t, "dist")
}

func buildTo(t *testing.T, out string) {
	t.Helper()
	mesh(t, 0, "build", "--source", "src", "--version", "1.0.0", "--counter", "1700000000", "--arch", "x86_64", "--keys", "keys", "--out", out)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write puts other bytes into the file, in a new one: names may be hard links.
func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// listing is all files of "dist".
func listing(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir("dist", func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil || len(out) < 20 {
		t.Fatalf("%d files, %v", len(out), err)
	}
	return out
}

// verify reads "dist".
func verify(t *testing.T) error {
	t.Helper()
	policy, err := trust.LoadDir("keys")
	if err != nil {
		t.Fatal(err)
	}
	_, err = check.Dir(t.Context(), "dist", check.Options{Policy: policy, Now: time.Now()})
	return err
}

func publisher(t *testing.T) *signing.Signer {
	t.Helper()
	s, err := (&program{keys: "keys", secret: []byte(testPassphrase)}).publisher()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// resign makes release.json and SHA256SUMS fit what lies in "dist", as if the
// publisher had published it so.
func resign(t *testing.T, s *signing.Signer) {
	t.Helper()
	m, err := check.ParseManifest(read(t, "dist/release.json"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range m.Files {
		b := read(t, "dist/"+f.Name)
		m.Files[i].Size, m.Files[i].SHA256 = int64(len(b)), digest.FromBytes(b).Encoded()
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"SHA256SUMS": m.Sums(), "release.json": b} {
		sig, err := trust.Sign(s.Key, digest.FromBytes(content))
		if err != nil {
			t.Fatal(err)
		}
		write(t, "dist/"+name, content)
		write(t, "dist/"+name+trust.SignatureSuffix, sig)
	}
}

// refused holds that "dist" is refused, and that the error names name.
func refused(t *testing.T, what, name string) {
	t.Helper()
	err := verify(t)
	if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v, want one refused line about %q", what, err, name)
	}
}

func oneFlippedByte(t *testing.T) {
	if err := verify(t); err != nil {
		t.Fatal(err)
	}
	s := publisher(t)
	about := []string{"dist/release.json", "dist/SHA256SUMS"}
	for _, file := range listing(t) {
		good := read(t, file)
		n := len(good)
		for i, at := range []int{0, n / 5, n / 2, n - 40, n - 1} {
			if at < 0 {
				continue
			}
			b := slices.Clone(good)
			b[at] ^= 1 << (i + at%3)
			write(t, file, b)
			if err := verify(t); fault.KindOf(err) != fault.Refused {
				t.Errorf("%s, byte %d: %v", file, at, err)
			}
			// And when the lists were made after the damage: somebody else must
			// see it.
			if i < 2 || strings.HasPrefix(file, about[0]) || strings.HasPrefix(file, about[1]) {
				continue
			}
			resign(t, s)
			if err := verify(t); fault.KindOf(err) != fault.Refused {
				t.Errorf("%s, byte %d, listed so: %v", file, at, err)
			}
			write(t, file, good)
			resign(t, s)
		}
		write(t, file, good)
	}
	if err := verify(t); err != nil {
		t.Errorf("after all was put back: %v", err)
	}
}

func tarballByManifest(t *testing.T) {
	s := publisher(t)
	const file = "dist/nox-mesh-host-1.0.0-linux-x86_64.tar.gz"
	good := read(t, file)
	// The head of gzip, of which readers ignore much, the stream, its sums; not
	// the padding of its last byte, which says nothing.
	for _, at := range []int{0, 1, 2, 3, 4, 7, 8, 9, 10, 100, len(good) / 2, len(good) - 1000, len(good) - 8, len(good) - 4, len(good) - 1} {
		b := slices.Clone(good)
		b[at] ^= 2
		write(t, file, b)
		if _, err := s.File(file); err != nil {
			t.Fatal(err)
		}
		resign(t, s)
		refused(t, "byte "+string(rune('0'+at%10)), filepath.Base(file))
	}
	write(t, file, append(slices.Clone(good), 0))
	if _, err := s.File(file); err != nil {
		t.Fatal(err)
	}
	resign(t, s)
	refused(t, "a byte more", "more after its end")
}

func notTogether(t *testing.T) {
	s := publisher(t)
	keep := map[string][]byte{}
	for _, f := range listing(t) {
		keep[f] = read(t, f)
	}
	restore := func() {
		for f, b := range keep {
			write(t, f, b)
		}
	}
	// The same version and counter of another source.
	main := "src/host/cmd/mesh-host/main.go"
	write(t, main, bytes.Replace(read(t, main), []byte(`"mesh-host "`), []byte(`"Mesh-Host "`), 1))
	buildTo(t, "other")
	const (
		floor = "dist/nox-mesh-host-1.0.0-linux-x86_64.tar.gz"
		repo  = "dist/arch/x86_64/"
		pkg   = repo + "nox-mesh-host-1.0.0-1-x86_64.pkg.tar.zst"
	)
	for what, c := range map[string]struct {
		do   func()
		says string
	}{
		"another tarball": {func() {
			for _, f := range []string{floor, floor + trust.SignatureSuffix} {
				write(t, f, read(t, "other"+strings.TrimPrefix(f, "dist")))
			}
		}, "nox-mesh-host-1.0.0-1-x86_64.pkg.tar.zst"},
		"another package": {func() {
			for _, f := range []string{pkg, pkg + ".sig"} {
				write(t, f, read(t, "other"+strings.TrimPrefix(f, "dist")))
			}
		}, "its mesh-host is not the one"},
		"another tarball and package": {func() {
			for _, f := range []string{floor, floor + trust.SignatureSuffix, pkg, pkg + ".sig"} {
				write(t, f, read(t, "other"+strings.TrimPrefix(f, "dist")))
			}
		}, "does not say what the packages say"},
		"another database": {func() {
			for _, f := range []string{"nox-mesh.files", "nox-mesh.files.sig", "nox-mesh.files.tar.zst", "nox-mesh.files.tar.zst.sig"} {
				b := read(t, "other/arch/x86_64/"+f)
				write(t, repo+f, b)
			}
			for _, f := range []string{"nox-mesh.db", "nox-mesh.db.sig"} {
				write(t, repo+f, read(t, "other/arch/x86_64/"+f))
			}
		}, "it is not the same as"},
		"a signature of another file": {func() { write(t, pkg+".sig", read(t, repo+"nox-mesh.db.sig")) }, "bad signature"},
		"no signature":                {func() { write(t, pkg+".sig", nil) }, "no signature"},
	} {
		restore()
		c.do()
		resign(t, s)
		refused(t, what, c.says)
	}
	for what, c := range map[string]struct {
		do   func() error
		says string
	}{
		"a file more":        {func() error { return os.WriteFile("dist/arch/README", nil, 0o644) }, `"arch/README": it is no file of this release`},
		"a file less":        {func() error { return os.Remove(floor) }, "it is listed, and not there"},
		"no release.json":    {func() error { return os.Remove("dist/release.json") }, "no finished release"},
		"a symlink":          {func() error { os.Remove(floor); return os.Symlink("SHA256SUMS", floor) }, "not a regular file"},
		"a pipe":             {func() error { os.Remove(floor); return syscall.Mkfifo(floor, 0o600) }, "not a regular file"},
		"sums of a mirror":   {func() error { return s.Write("dist/SHA256SUMS", nil) }, "SHA256SUMS"},
		"one that was empty": {func() error { return os.Truncate("dist/release.json", 0) }, "release.json"},
	} {
		os.Remove("dist/arch/README")
		os.Remove(floor)
		restore()
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		refused(t, what, c.says)
	}
	os.Remove(floor)
	restore()
	os.Remove("dist/arch/README")
	mesh(t, 0, "keys", "init", "strangers")
	mesh(t, fault.Refused, "verify", "--trust", "strangers", "dist")
	mesh(t, fault.Usage, "verify", "dist")
	if out := mesh(t, 0, "verify", "--trust", "keys", "dist"); !strings.Contains(out, "counter 1700000000, of a commit that is not known: good") {
		t.Errorf("%s", out)
	}
}

func stated(t *testing.T) {
	s := publisher(t)
	const (
		sbom = "dist/mesh-host-1.0.0-linux-x86_64.cdx.json"
		of   = "dist/mesh-host-1.0.0-linux-x86_64.cdx.sigstore.json"
		how  = "dist/nox-mesh-1.0.0.provenance.sigstore.json"
	)
	good := map[string][]byte{sbom: read(t, sbom), of: read(t, of), how: read(t, how)}
	p := attest.Program{Name: "mesh-host", Version: "1.0.0", Time: time.Unix(1700000000, 0)}
	policy := s.Policy
	st, err := attest.Verify(good[how], policy)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range st.Subjects {
		if x.Name == "x86_64/mesh-host" {
			p.SHA256 = x.SHA256
		}
	}
	signed := func(s *signing.Signer, st attest.Statement) []byte {
		t.Helper()
		b, err := attest.Sign(s.Key, st)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	other := bytes.Replace(good[sbom], []byte(`"std"`), []byte(`"STD"`), 1)
	wrong := p
	wrong.SHA256 = strings.Repeat("0", 64)
	less := st
	less.Subjects = less.Subjects[1:]
	more := st
	more.Subjects = append(slices.Clone(st.Subjects), attest.Subject{Name: "zzz", SHA256: wrong.SHA256})
	later := st
	later.Predicate = bytes.Replace(st.Predicate, []byte("1700000000"), []byte("1700000001"), 1)
	mesh(t, 0, "keys", "init", "strangers")
	stranger := &program{keys: "strangers", secret: []byte(testPassphrase)}
	theirs, err := stranger.signer()
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		file    string
		content []byte
		says    string
	}{
		"an SBOM that was not signed so": {sbom, other, "does not say what the SBOM says"},
		"another program":                {of, signed(s, attest.StateSBOM(good[sbom], wrong)), "not about"},
		"somebody else's statement":      {of, signed(theirs, attest.StateSBOM(good[sbom], p)), "unknown key"},
		"a provenance of less":           {how, signed(s, less), "provenance"},
		"a provenance of more":           {how, signed(s, more), `"zzz"`},
		"another build":                  {how, signed(s, later), "not about a build of this release"},
		"an SBOM for a provenance":       {how, good[of], "provenance"},
	} {
		write(t, c.file, c.content)
		resign(t, s)
		refused(t, what, c.says)
		write(t, c.file, good[c.file])
	}
	resign(t, s)
	if err := verify(t); err != nil {
		t.Error(err)
	}
}

func builtAgain(t *testing.T) {
	// Somebody else: other habits, another place, other times.
	if err := os.CopyFS("copy", os.DirFS("src")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir("copy", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, time.Unix(1, 0), time.Unix(2, 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TZ", "Asia/Kolkata")
	t.Setenv("GOMAXPROCS", "1")
	defer syscall.Umask(syscall.Umask(0o077))
	out := mesh(t, 0, "rebuild", "--keys", "keys", "--source", "copy", "dist")
	if strings.Contains(out, "differs") || strings.Count(out, " same\n") != len(listing(t)) {
		t.Errorf("%s", out)
	}
	// Whoever has no secret key gets the same signatures, as far as they cover.
	mesh(t, 0, "keys", "export", "keys", "--out", "public")
	out = mesh(t, 0, "rebuild", "--trust", "public", "--source", "copy", "dist")
	if strings.Contains(out, "differs") || strings.Count(out, " same\n") != len(listing(t)) {
		t.Errorf("without a key: %s", out)
	}
	// A pipe holds nobody up.
	for _, name := range []string{"release.json", "SHA256SUMS.sigstore.json"} {
		was := read(t, "dist/"+name)
		if err := errors.Join(os.Remove("dist/"+name), syscall.Mkfifo("dist/"+name, 0o600)); err != nil {
			t.Fatal(err)
		}
		if out := mesh(t, fault.Refused, "rebuild", "--trust", "public", "--source", "copy", "dist"); !strings.Contains(out, "not a regular file") {
			t.Errorf("%s is a pipe: %s", name, out)
		}
		write(t, "dist/"+name, was)
	}
	write(t, "copy/LICENSE", append(read(t, "copy/LICENSE"), '\n'))
	if out := mesh(t, fault.Failed, "rebuild", "--trust", "public", "--source", "copy", "dist"); !regexp.MustCompile(`"nox-mesh-host-1.0.0-linux-x86_64.tar.gz": .*: it has other bytes than that of the release`).MatchString(out) {
		t.Errorf("another licence, without a key: %s", out)
	}
	write(t, "copy/LICENSE", read(t, "src/LICENSE"))
	write(t, "dist/nox-mesh-1.0.0-linux-x86_64.bundle.tar", append(read(t, "dist/nox-mesh-1.0.0-linux-x86_64.bundle.tar"), 0))
	write(t, "dist/more", nil)
	main := "copy/host/cmd/mesh-host/main.go"
	write(t, main, bytes.Replace(read(t, main), []byte(`"mesh-host "`), []byte(`"Mesh-Host "`), 1))
	out = mesh(t, fault.Failed, "rebuild", "--keys", "keys", "--source", "copy", "dist")
	for file, is := range map[string]string{
		"more": "differs +not built again", "nox-mesh-1.0.0-linux-x86_64.bundle.tar": "differs +byte ",
		"nox-mesh-host-1.0.0-linux-x86_64.tar.gz": "differs +byte ", "release.json": "differs +byte ",
		"arch/x86_64/nox-mesh-controller-1.0.0-1-x86_64.pkg.tar.zst": "same", "mesh-controller-1.0.0-linux-x86_64.cdx.json": "same",
	} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(file) + ` +` + is).MatchString(out) {
			t.Errorf("%s is not %q:\n%s", file, is, out)
		}
	}
	mesh(t, fault.Failed, "rebuild", "--keys", "keys", "none")
}
