//go:build machine

package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The cases of a bundle that need the programs themselves; the others are beside
// the reader (lab/hardcases/testdata/cases has the list).

// machine makes an empty folder that mesh-host takes for a machine.
func (b *bench) machine(name string) {
	b.t.Helper()
	if err := os.RemoveAll(b.path(name)); err != nil {
		b.t.Fatal(err)
	}
	if err := os.MkdirAll(b.path(name+"/var/lib/nox-mesh"), 0o700); err != nil { // as installed
		b.t.Fatal(err)
	}
}

// applies gives the bundle to a machine, behind place.
func (b *bench) applies(place []string, machine, bundle string) answer {
	b.t.Helper()
	return b.in(place, b.path("mesh-host"), "--root", machine, "bootstrap", "--trust", "keys", bundle)
}

// applied holds that a machine has what the bundle declares.
func (b *bench) applied(machine string) {
	b.t.Helper()
	if got := b.get(machine + "/opt/tool"); got != b.get("tool") {
		b.t.Errorf("the machine has not what was declared (%d bytes)", len(got))
	}
}

// stored are the blobs in a machine's content store; each must be what its name
// says.
func (b *bench) stored(machine string) (blobs []string) {
	b.t.Helper()
	dir := machine + "/var/lib/nox-mesh/content/blobs/sha256/"
	es, _ := os.ReadDir(b.path(dir))
	for _, e := range es {
		sum := sha256.Sum256([]byte(b.get(dir + e.Name())))
		if hex.EncodeToString(sum[:]) != e.Name() {
			b.t.Errorf("blob %s holds something else", e.Name())
		}
		blobs = append(blobs, e.Name())
	}
	return blobs
}

// TestT22ADiskThatIsFull: on a disk without room for a bundle it is said before
// anything of it is written.
func TestT22ADiskThatIsFull(t *testing.T) {
	judges(t, "mount", "cp")
	b := newBench(t)
	b.bundle()
	b.put("tool", strings.Repeat("a large tool\n", 400_000))
	b.must(b.create("large.bundle.tar"))
	b.machine("disk")
	b.machine("saved")
	place := []string{"unshare", "-m", "sh", "-c",
		`mount -t tmpfs -o size=3m tmpfs disk && mkdir -p disk/var/lib/nox-mesh || exit 99; "$@"; code=$?; cp -a disk/. saved; exit $code`, "sh"}
	a := b.applies(place, "disk", "large.bundle.tar")
	if a.code != 1 || !strings.Contains(a.err, "no space (needs 5") || !strings.Contains(a.err, "make room in") {
		t.Errorf("exit %d: %s", a.code, a.err)
	}
	if blobs := b.stored("saved"); len(blobs) > 0 {
		t.Errorf("%d blobs were written", len(blobs))
	}
}

// create makes the bench's bundle anew, with what is in its files now.
func (b *bench) create(out string, more ...string) answer {
	b.t.Helper()
	return b.in(nil, b.path("mesh-release"), append([]string{"bundle", "create", "bundle.toml", "--version", "1", "--arch", architecture,
		"--counter", "7", "--keys", "keys", "--out", out}, more...)...)
}

// TestT30InAnEmptyNetworkNamespace: nothing of reading, verifying and applying asks
// a network.
func TestT30InAnEmptyNetworkNamespace(t *testing.T) {
	judges(t)
	b := newBench(t)
	b.bundle()
	b.machine("machine")
	empty := []string{"unshare", "-n"}
	for _, verb := range []string{"inspect", "verify"} {
		b.must(b.in(empty, b.path("mesh-host"), "bundle", verb, "--trust", "keys", "site.bundle.tar"))
	}
	b.must(b.applies(empty, "machine", "site.bundle.tar"))
	b.applied("machine")
}

// TestT31AnotherArchitecture: the bundle of another machine is refused before
// anything of it is written, and the fault says which is wanted.
func TestT31AnotherArchitecture(t *testing.T) {
	judges(t)
	b := newBench(t)
	b.bundle()
	other := map[string]string{"x86_64": "aarch64", "aarch64": "x86_64"}[architecture]
	b.must(b.create("other.bundle.tar", "--arch", other))
	b.machine("machine")
	a := b.applies(nil, "machine", "other.bundle.tar")
	want := fmt.Sprintf("is for %s, this machine is %s; fetch the bundle for %s", other, architecture, architecture)
	if a.code != 3 || !strings.Contains(a.err, "wrong architecture") || !strings.Contains(a.err, want) {
		t.Errorf("exit %d: %s", a.code, a.err)
	}
	if blobs := b.stored("machine"); len(blobs) > 0 {
		t.Errorf("%d blobs were written", len(blobs))
	}
}

// TestT32ASecondApplyDoesNothing: no file of the content store is so much as
// touched, nor what was applied.
func TestT32ASecondApplyDoesNothing(t *testing.T) {
	judges(t)
	b := newBench(t)
	b.bundle()
	b.machine("machine")
	b.must(b.applies(nil, "machine", "site.bundle.tar"))
	b.applied("machine")
	before := b.changes("machine/var/lib/nox-mesh/content") + b.changes("machine/opt")
	b.must(b.applies(nil, "machine", "site.bundle.tar"))
	if after := b.changes("machine/var/lib/nox-mesh/content") + b.changes("machine/opt"); after != before {
		t.Errorf("before\n%safter\n%s", before, after)
	}
}

// changes lists inode and time of the last change, which nobody can set (ctime),
// of all that is under dir.
func (b *bench) changes(dir string) string {
	b.t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(b.path(dir), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err == nil {
			st := fi.Sys().(*syscall.Stat_t)
			fmt.Fprintln(&out, path, st.Ino, st.Ctim.Nano())
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out.String()
}

// killing is strace that kills at the n-th of the calls; it counts those of each
// thread by itself.
func killing(calls string, n int) []string {
	return []string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + calls, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n)}
}

// kills runs what is done at each of the calls until it was not killed; check is
// called after each.
func (b *bench) kills(calls []string, before func(), do func(place []string) answer, check func(at string)) {
	b.t.Helper()
	killed := 0
	for _, c := range calls {
		for n := 1; ; n++ {
			before()
			a := do(killing(c, n))
			at := fmt.Sprintf("killed at %s %d", c, n)
			if a.code > 0 {
				b.t.Fatalf("%s: exit %d\n%s", at, a.code, a.err)
			}
			check(at)
			if a.code == 0 {
				break
			}
			if killed++; n > 300 || b.t.Failed() {
				b.t.FailNow()
			}
		}
	}
	b.t.Logf("%d kills", killed)
	if killed < 5 {
		b.t.Errorf("only %d kills hit", killed)
	}
}

// TestT36ABuilderThatIsKilled: whatever was in the place of the bundle is there,
// or the whole new one; the next run is not in the way of what was left.
func TestT36ABuilderThatIsKilled(t *testing.T) {
	judges(t, "strace")
	b := newBench(t)
	b.bundle()
	old := b.get("site.bundle.tar")
	b.put("tool", strings.Repeat("another tool\n", 1000))
	b.must(b.create("new.bundle.tar"))
	young := b.get("new.bundle.tar")
	b.run(b.path("mesh-release"), "keys", "rotate", "keys", "--release")
	b.must(b.in(nil, b.path("mesh-release"), "bundle", "resign", "--keys", "keys", "--add", "--out", "resigned.bundle.tar", "new.bundle.tar"))
	resigned := b.get("resigned.bundle.tar")
	b.must(b.create("rotated.bundle.tar"))
	rotated := b.get("rotated.bundle.tar")
	for _, c := range []struct {
		name, was, want string
		args            []string
	}{
		{"create", old, rotated, []string{"bundle", "create", "bundle.toml", "--version", "1", "--arch", architecture, "--counter", "7", "--keys", "keys", "--out", "b"}},
		{"create where nothing was", "", rotated, []string{"bundle", "create", "bundle.toml", "--version", "1", "--arch", architecture, "--counter", "7", "--keys", "keys", "--out", "b"}},
		{"resign", young, resigned, []string{"bundle", "resign", "--keys", "keys", "--add", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &bench{t, b.dir}
			do := func(place []string) answer { return b.in(place, b.path("mesh-release"), c.args...) }
			b.kills([]string{"write,pwrite64,copy_file_range", "fsync", "rename,renameat,renameat2", "fchmod"}, func() {
				_ = os.Remove(b.path("b"))
				if c.was != "" {
					b.put("b", c.was)
				}
			}, do, func(at string) {
				got, err := os.ReadFile(b.path("b"))
				if c.was == "" && err != nil {
					got = nil
				}
				if string(got) != c.was && string(got) != c.want {
					t.Errorf("%s: neither the old nor the new one (%d bytes)", at, len(got))
				}
				b.must(do(nil))
				if b.get("b") != c.want {
					t.Errorf("%s, and again: other bytes", at)
				}
				if left, _ := filepath.Glob(b.path(".nox-*")); len(left) > 0 {
					t.Errorf("%s, and again: %v is left", at, left)
				}
			})
		})
	}
}

// TestT43AKillDuringAnApply: at each call that makes something durable or visible,
// the content store holds whole blobs only, and the next apply ends as one that was
// never disturbed.
func TestT43AKillDuringAnApply(t *testing.T) {
	judges(t, "strace")
	b := newBench(t)
	b.bundle()
	b.machine("whole")
	b.must(b.applies(nil, "whole", "site.bundle.tar"))
	want := b.stored("whole")
	b.kills([]string{"fsync", "rename,renameat,renameat2", "unlink,unlinkat"}, func() { b.machine("machine") },
		func(place []string) answer { return b.applies(place, "machine", "site.bundle.tar") },
		func(at string) {
			b.stored("machine")
			b.must(b.applies(nil, "machine", "site.bundle.tar"))
			b.applied("machine")
			if got := b.stored("machine"); !slices.Equal(got, want) {
				t.Errorf("%s, and again: %d blobs, want %d", at, len(got), len(want))
			}
			if left, _ := filepath.Glob(b.path("machine/var/lib/nox-mesh/content/staging/.*.part")); len(left) > 0 {
				t.Errorf("%s, and again: %v is left", at, left)
			}
		})
}
