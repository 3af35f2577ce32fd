package installer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// The stand-in for the host answers "version", and "run" until its standard
// input ends.
const standInSource = `package main

import ("fmt"; "io"; "os")

var version = "none"

func main() {
	switch os.Args[1] {
	case "version":
		fmt.Println("mesh-host " + version)
	case "run":
		fmt.Println("up")
		io.Copy(io.Discard, os.Stdin)
	}
}
`

var standIns struct {
	sync.Mutex
	dir     string
	content map[string][]byte
}

// standIn builds the stand-in of a version, once.
func standIn(t testing.TB, version string) []byte {
	t.Helper()
	standIns.Lock()
	defer standIns.Unlock()
	if b, ok := standIns.content[version]; ok {
		return b
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go command is not here")
	}
	if standIns.dir == "" {
		standIns.content = map[string][]byte{}
		if standIns.dir, err = os.MkdirTemp("", "standin"); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(standIns.dir, "go.mod"), "module standin\n\ngo 1.26\n")
		write(t, filepath.Join(standIns.dir, "main.go"), standInSource)
	}
	out := filepath.Join(standIns.dir, version)
	cmd := exec.Command(tool, "build", "-ldflags=-s -w -X main.version="+version, "-o", out, ".")
	cmd.Dir = standIns.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOWORK=off")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	standIns.content[version] = b
	return b
}

// A publisher has keys and a chain of release roots.
type publisher struct {
	root, release *ecdsa.PrivateKey
	roots         [][]byte
	last          *trust.Root
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newPublisher(t testing.TB) *publisher {
	p := &publisher{root: newKey(t)}
	p.rotate(t)
	return p
}

// rotate makes a new release key, and the next root, which revokes the old one.
func (p *publisher) rotate(t testing.TB) {
	t.Helper()
	var revoke []string
	if p.release != nil {
		revoke = append(revoke, describe(t, p.release, trust.ScopeRelease).ID)
	}
	p.release = newKey(t)
	keys := []trust.Key{describe(t, p.root, trust.ScopeRoot), describe(t, p.release, trust.ScopeRelease)}
	next := trust.NewRoot(p.last, keys, revoke...)
	b, err := trust.SignRoot(next, p.root)
	if err != nil {
		t.Fatal(err)
	}
	p.roots, p.last = append(p.roots, b), &next
}

func describe(t testing.TB, k *ecdsa.PrivateKey, scope trust.Scope) trust.Key {
	t.Helper()
	d, err := trust.NewKey(k.Public(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const (
	arch     = "x86_64"
	confText = "# nothing\n"
)

func machine() string { return map[string]string{"amd64": arch, "arm64": "aarch64"}[runtime.GOARCH] }

// unpacked makes the top folder of a tarball.
func (p *publisher) unpacked(t testing.TB, version string, binary []byte, change func(map[string]string, *pkgbuild.Manifest)) string {
	t.Helper()
	content := map[string]string{"LICENSE": "do what you like\n", "host.toml": confText, "mesh-host": string(binary)}
	for i, r := range p.roots {
		content[fmt.Sprintf("share/nox-mesh/trust/%d.root.json", i+1)] = string(r)
	}
	m := pkgbuild.Manifest{Version: version, Architecture: machine()}
	if change != nil {
		change(content, &m)
	}
	dir := t.TempDir()
	names := []string{"LICENSE", "host.toml"}
	for i := range p.roots {
		names = append(names, fmt.Sprintf("share/nox-mesh/trust/%d.root.json", i+1))
	}
	for _, name := range append(names, "mesh-host") {
		text, ok := content[name]
		if !ok {
			continue
		}
		mode := uint32(0o644)
		if name == "mesh-host" {
			mode = 0o755
		}
		sum := sha256.Sum256([]byte(text))
		m.Members = append(m.Members, pkgbuild.Member{Path: name, Mode: mode, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])})
		write(t, filepath.Join(dir, name), text)
	}
	manifest := m.Encode()
	signature, err := trust.Sign(p.release, digest.FromBytes(manifest))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "MANIFEST"), string(manifest))
	write(t, filepath.Join(dir, "MANIFEST.sigstore.json"), string(signature))
	if err := os.Chmod(filepath.Join(dir, "mesh-host"), 0o755); err != nil && content["mesh-host"] != "" {
		t.Fatal(err)
	}
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// image is a directory that stands for a machine.
func image(t testing.TB) layout.Layout {
	t.Helper()
	root := filepath.Join(t.TempDir(), "image")
	for _, dir := range []string{"etc/systemd/system", "usr/local/bin", "usr/local/share", "var/lib"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "etc/hostname"), "image\n")
	return layout.Layout{Root: root}
}

// tree describes everything under root: type, mode and content; with times, the
// inode and the time of the last change as well.
func tree(t testing.TB, root string, times bool) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		fmt.Fprintf(&b, "%s %v", rel, fi.Mode())
		if fi.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(text))
		}
		if st := fi.Sys().(*syscall.Stat_t); times {
			fmt.Fprintf(&b, " %d %v", st.Ino, st.Ctim)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// diff shows the lines that are in one tree only.
func diff(a, b string) string {
	var out []string
	for sign, pair := range map[string][2]string{"-": {a, b}, "+": {b, a}} {
		have := map[string]bool{}
		for l := range strings.Lines(pair[1]) {
			have[l] = true
		}
		for l := range strings.Lines(pair[0]) {
			if !have[l] {
				out = append(out, sign+l)
			}
		}
	}
	return strings.Join(out, "")
}
