package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

const testPassphrase = "correct horse"

// try runs mesh-release here and returns what it printed.
func try(args ...string) (string, error) {
	var out bytes.Buffer
	err := run(context.Background(), args, cli.Stdio{In: strings.NewReader(""), Out: &out, Err: io.Discard})
	return out.String(), err
}

// mesh runs mesh-release here, and returns what it printed and its fault.
func mesh(t *testing.T, want fault.Kind, args ...string) string {
	t.Helper()
	out, err := try(args...)
	if fault.KindOf(err) != want {
		t.Fatalf("mesh-release %s: %v, want exit code %d\n%s", strings.Join(args, " "), err, want, out)
	}
	if err != nil {
		out += err.Error()
	}
	return out
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
		"a signature has one spelling":                     oneSpelling,
		"a tarball is read by its manifest":                tarballByManifest,
		"what does not belong together is no release":      notTogether,
		"what is stated is what is packed":                 stated,
		"built again it is the same bytes, or one is told": builtAgain,
		"no more is read of signatures than they have":     largeSignatures,
		"programs compiled by others give the same":        packed,
		"a program that says something else is refused":    otherPrograms,
		"only a release of ours is replaced":               onlyOurs,
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
	s, err := (&program{quiet: true, keys: "keys", secret: []byte(testPassphrase)}).publisher()
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
