package publisher

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// strace runs mesh-release and does something to the n-th of its calls. strace counts
// the calls of each thread for itself, so hits, how often it was done, may be 0, 1 or
// more. The programs it starts are let be: their calls are not these.
func (d *desk) strace(call, what string, n int, args ...string) (r result, hits int) {
	d.t.Helper()
	log := d.path("strace.log")
	r = d.command(context.Background(), "strace", append([]string{"-f", "-qq", "-o", log, "-e", "trace=" + call,
		"-e", fmt.Sprintf("inject=%s:%s:when=%d", call, what, n), shared.program}, args...)...)
	b, err := os.ReadFile(log)
	must(d.t, err)
	if hits = strings.Count(string(b), "(INJECTED)"); hits == 0 && strings.Contains(string(b), "killed by SIGKILL") {
		hits = 1
	}
	return r, hits
}

// release puts a directory back to a release.
func (d *desk) release(dir, version string) {
	d.t.Helper()
	must(d.t, os.RemoveAll(d.path(dir)))
	must(d.t, os.RemoveAll(d.path("."+dir+".next")))
	for name, text := range shared.clean[version] {
		path := d.path(filepath.Join(dir, name))
		must(d.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(d.t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// programs are the two, compiled: what "pack" takes.
func (d *desk) programs() []string {
	d.t.Helper()
	d.ok(build("once", one)...)
	var files []string
	for _, id := range []string{"host/cmd/mesh-host", "controlplane/cmd/mesh-controller"} {
		c := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
			"-ldflags=-s -w -buildid= -X github.com/nox-mesh/nox-mesh/internal/version.version="+two, "-o", d.path("bin")+"/", "./"+id)
		c.Dir, c.Env = d.path("src"), append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		if out, err := c.CombinedOutput(); err != nil {
			d.t.Fatalf("%v\n%s", err, out)
		}
		files = append(files, "bin/"+filepath.Base(id))
	}
	return files
}

func (d *desk) packing(out string) []string {
	d.t.Helper()
	return append([]string{"pack", "--source", "src", "--version", two, "--counter", counters[two], "--keys", "keys", "--out", out}, d.programs()...)
}

// TestAnErrorOfAnyCallLeavesTheOldRelease makes each sync and rename of a packing
// fail in turn, and some writes.
func TestAnErrorOfAnyCallLeavesTheOldRelease(t *testing.T) {
	needs(t, "strace")
	d := newDesk(t)
	args := d.packing("dist")
	// Which of the calls fail: all of the rare ones, every so many of the others.
	for call, step := range map[string]int{"fsync": 17, "renameat": 7, "syncfs": 1, "renameat2": 1, "linkat": 2, "mkdirat": 3} {
		failed := 0
		for n := 1; ; n += step {
			if n > 500 {
				t.Fatalf("%s: it never gets through", call)
			}
			d.release("dist", one)
			what := fmt.Sprintf("%s %d", call, n)
			r, hits := d.strace(call, "error=EIO", n, args...)
			got := d.holds(what, "dist")
			if hits == 0 {
				if r.code != 0 || got != two {
					t.Errorf("%s did not fail: exit %d, it holds %q\n%s", what, r.code, got, r.err)
				}
				break
			}
			failed++
			if r.code == 0 {
				// Another way was found, as a copy for a link.
				if got != two || call == "fsync" || call == "syncfs" {
					t.Errorf("%s failed, exit 0, it holds %q", what, got)
				}
			} else {
				d.fault(what, r, 1, "input/output error")
				// The last syncs come after the exchange: it is the new one then, and
				// the old one may wait beside it for the next run.
				if got == two && call == "fsync" {
					d.ok(args...)
				} else if got != one {
					t.Errorf("%s failed: it holds %q", what, got)
				}
			}
			// A second error may have come while it tidied up: the next run does it then.
			if left := d.left(d.dir); hits > 1 || len(left) > 0 {
				t.Logf("%s: done %d times, left %q", what, hits, left)
				d.ok(args...)
			}
			d.tidy(what, d.dir)
		}
		if failed == 0 {
			t.Errorf("%s is never called", call)
		}
	}
}

// TestAKillOfAPackingLeavesAWholeRelease kills a packing at calls that change a
// directory; the next run gives what an undisturbed one gives.
func TestAKillOfAPackingLeavesAWholeRelease(t *testing.T) {
	needs(t, "strace")
	d := newDesk(t)
	args := d.packing("dist")
	for call, step := range map[string]int{"renameat": 9, "renameat2": 1, "syncfs": 1, "unlinkat": 11, "linkat": 3} {
		kills := 0
		for n := 1; ; n += step {
			if n > 500 {
				t.Fatalf("%s: it never gets through", call)
			}
			d.release("dist", one)
			what := fmt.Sprintf("killed at %s %d", call, n)
			_, hits := d.strace(call, "signal=KILL", n, args...)
			got := d.holds(what, "dist")
			if hits == 0 {
				break
			}
			kills++
			if got == "" {
				t.Errorf("%s: the old release is gone", what)
			}
			d.ok(args...)
			if got := d.holds(what+", then again", "dist"); got != two {
				t.Errorf("%s, then again: it holds %q", what, got)
			}
			if _, err := os.Lstat(d.path(".dist.next")); err == nil {
				t.Errorf("%s, then again: the half directory is still there", what)
			}
			must(t, os.RemoveAll(d.path("tmp")))
			must(t, os.Mkdir(d.path("tmp"), 0o700))
		}
		if kills == 0 {
			t.Errorf("%s is never called", call)
		}
	}
}
