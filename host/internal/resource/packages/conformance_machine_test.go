//go:build machine

package packages

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/resourcetest"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// packedVariable names the folder with the packages of TestPackageKeepsThePromises.
const packedVariable = "NOX_PACKAGES_TEST_PACKED"

// sign is what lies beside a package.
func sign(t testing.TB, b []byte) []byte {
	t.Helper()
	var sig bytes.Buffer
	made := time.Unix(1700000100, 0)
	if err := openpgp.DetachSign(&sig, publisher().entity, bytes.NewReader(b), &packet.Config{Time: func() time.Time { return made }}); err != nil {
		t.Fatal(err)
	}
	return sig.Bytes()
}

// The kind keeps the promises of all kinds. It is killed there itself, where
// TestP02KilledAnywhereConverges kills the manager.
func TestPackageKeepsThePromises(t *testing.T) {
	s := pacmanSort
	s.require(t)
	// The process that is killed takes what this one made: it shall do nothing
	// else that changes something.
	dir := os.Getenv(packedVariable)
	if dir == "" {
		dir = t.TempDir()
		for _, v := range []string{"1", "2"} {
			b, err := os.ReadFile(s.pack(t, tree(t, hello(v)), hello(v)))
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, v), string(b), 0o644)
			put(t, filepath.Join(dir, v+".sig"), string(sign(t, b)), 0o644)
		}
		put(t, filepath.Join(dir, "root"), string(publisher().policy.RootBytes()), 0o644)
		if err := os.Setenv(packedVariable, dir); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Unsetenv(packedVariable) })
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	wish := func(v string) resource.Want {
		return want(t, fmt.Sprintf(`{"type":"package","name":"hello","version":"%s-1","source":%q,"signature":%q}`,
			v, digest.FromBytes(read(v)), digest.FromBytes(read(v+".sig"))))
	}
	resourcetest.Run(t, resourcetest.Suite{
		Prepare: func(t *testing.T, l layout.Layout) { prepare(t, s, l) },
		New: func(t *testing.T, l layout.Layout) resource.Kind {
			w := worldAt(t, s, l)
			for _, name := range []string{"1", "1.sig", "2", "2.sig"} {
				if _, _, err := w.store.Add(context.Background(), bytes.NewReader(read(name)), 1<<30); err != nil {
					t.Fatal(err)
				}
			}
			w.kind.Trust = func() (*trust.Policy, error) { return trust.FromRoot(read("root")) }
			w.kind.patience = time.Minute // the manager of a host that was killed is waited for
			return w.kind
		},
		Want:  func(layout.Layout) resource.Want { return wish("1") },
		Other: func(layout.Layout) resource.Want { return wish("2") },
		Drifts: map[string]func(*testing.T, layout.Layout){
			"content": func(t *testing.T, l layout.Layout) { put(t, l.Path("/usr/bin/hello"), "HELLO 1\n", 0o755) },
			"gone":    func(t *testing.T, l layout.Layout) { tool(t, "/", "rm", "-r", l.Path("/usr/share/hello")) },
			"removed": func(t *testing.T, l layout.Layout) {
				line := s.remove(l, "hello")
				tool(t, "/", line[0], line[1:]...)
			},
			"entry hollow": func(t *testing.T, l layout.Layout) {
				tool(t, "/", "rm", l.Path("/var/lib/pacman/local/hello-1-1/desc"), l.Path("/var/lib/pacman/local/hello-1-1/files"))
			},
		},
		Foreign: func(t *testing.T, l layout.Layout) {
			line := s.install(l, filepath.Join(dir, "2"))
			tool(t, "/", line[0], line[1:]...)
		},
	})
}

// What the host verified is verified by pacman again, as the machine says.
func TestSignaturesAreCheckedTwice(t *testing.T) {
	w := newWorld(t, pacmanSort)
	put(t, w.l.Path("/etc/pacman.conf"), "[options]\nArchitecture = auto\nSigLevel = Required\nLocalFileSigLevel = Required\n", 0o644)
	home := w.l.Path("/etc/pacman.d/gnupg")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	one := w.wish(hello("1"))
	w.fails(one, nil, "pacman failed: error:")
	w.gone("/usr/bin/hello")

	var ring bytes.Buffer
	if err := publisher().entity.Serialize(&ring); err != nil {
		t.Fatal(err)
	}
	key := w.TempDir() + "/key"
	put(t, key, ring.String(), 0o644)
	tool(t, "/", "gpg", "--homedir", home, "--batch", "--no-autostart", "--import", key)
	trusted := w.TempDir() + "/trust"
	put(t, trusted, fmt.Sprintf("%X:6:\n", publisher().entity.PrimaryKey.Fingerprint), 0o644)
	tool(t, "/", "gpg", "--homedir", home, "--batch", "--no-autostart", "--import-ownertrust", trusted)
	w.apply(one, nil)
	w.tidy()

	// And before it: one that is signed by nobody that we know.
	file := w.file(hello("2"))
	runs := len(w.runs)
	other := w.source(file, "hello", "2-1")
	foreign := want(t, fmt.Sprintf(`{"type":"package","name":"hello","version":"2-1","source":%q,"signature":%q}`,
		other.Resource.Package.Source, one.Resource.Package.Signature))
	rec := record(one, resource.State{})
	w.fails(foreign, &rec, "bad signature")
	if len(w.runs) != runs {
		t.Errorf("pacman got it: %q", w.runs[runs:])
	}
	w.tidy()
}

func TestP04AFullDiskIsNeverCalledInstalled(t *testing.T) {
	if os.Getenv(hostVariable) == "" {
		pacmanSort.require(t)
		cmd := exec.Command("unshare", "-m", os.Args[0], "-test.run=^TestP04AFullDiskIsNeverCalledInstalled$", "-test.v")
		cmd.Env = append(os.Environ(), hostVariable+"=namespace")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	each(t, func(w *world) {
		r := hello("1")
		r.files["usr/share/hello/large"] = string(make([]byte, 8<<20))
		large := w.wish(r)
		share := w.l.Path("/usr/share")
		if err := os.MkdirAll(share, 0o755); err != nil {
			t.Fatal(err)
		}
		tool(t, "/", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", share)
		mounted := true
		free := func() {
			if mounted {
				mounted = false
				tool(t, "/", "umount", share)
			}
		}
		defer free()
		w.fails(large, nil, w.words["full"])
		free()
		st := w.check(large, nil)
		if err := w.kind.Apply(w.ctx(), large, nil, st); err != nil {
			t.Fatal(err)
		}
		now := record(large, resource.State{})
		w.same(large, &now)
		w.tidy()
	})
}
