package repository

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAKillAnywhereLeavesAPair kills a change at each of its calls that change a
// directory or sync, in turn, and looks at what a reader finds: a repository that
// verifies, the old or the new, and one that the next change completes.
func TestAKillAnywhereLeavesAPair(t *testing.T) {
	if testing.Short() {
		t.Skip("it kills fifty times")
	}
	need(t, "strace")
	p := newPublisher(t)
	src, top := t.TempDir(), t.TempDir()
	repo, www := filepath.Join(top, "repo"), filepath.Join(top, "www")
	one := p.pack(src, recipe{name: "web", version: "1-1", info: "pkgdesc = w\n", files: []string{"usr/"}})
	two := p.pack(src, recipe{name: "web", version: "2-1", info: "pkgdesc = w\n", files: []string{"usr/"}})
	add := func(pkg string) []string {
		return []string{"repo", "add", "--keys", p.keys, "--passphrase-file", p.secret, "--keep", "1", repo, pkg}
	}
	publish := []string{"repo", "publish", "--trust", p.keys, "--to", www, repo}
	listed := func(dir string) string {
		out := p.mesh("repo", "list", "--trust", p.keys, dir)
		for _, v := range []string{"1-1", "2-1"} {
			if strings.Contains(out, v) {
				return v
			}
		}
		return "none"
	}
	// What there is before each kill: copies of three directories.
	base := t.TempDir()
	p.mesh(add(one)...)
	p.mesh(publish...)
	run(t, nil, "cp", "-a", repo, filepath.Join(base, "old"))
	run(t, nil, "cp", "-a", www, filepath.Join(base, "www"))
	p.mesh(add(two)...)
	run(t, nil, "cp", "-a", repo, filepath.Join(base, "new"))
	for _, change := range []struct {
		name string
		from string // which repository is there before
		args []string
		dir  string
		// calls are where it is killed; both end in the same code, so not all twice.
		calls []string
	}{
		{"publish", "new", publish, www, []string{"renameat2", "linkat", "fsync", "syncfs", "mkdirat", "unlinkat"}},
		{"add", "old", add(two), repo, []string{"renameat2", "linkat", "fsync"}},
	} {
		for _, call := range change.calls {
			t.Run(change.name+" "+call, func(t *testing.T) {
				kills := 0
				for n := 1; ; n++ {
					if n > 60 {
						t.Fatal("it never gets through")
					}
					run(t, nil, "rm", "-rf", repo, www, filepath.Join(top, ".repo.next"), filepath.Join(top, ".www.next"))
					run(t, nil, "cp", "-a", filepath.Join(base, change.from), repo)
					run(t, nil, "cp", "-a", filepath.Join(base, "www"), www)
					if !killed(t, call, n, change.args) {
						if got := listed(change.dir); got != "2-1" {
							t.Errorf("not killed, and lists %s", got)
						}
						break
					}
					kills++
					if got := listed(change.dir); got != "1-1" && got != "2-1" {
						t.Errorf("killed at %s %d: lists %s", call, n, got)
					}
					p.mesh(change.args...)
					if got := listed(change.dir); got != "2-1" {
						t.Errorf("killed at %s %d, then done again: lists %s", call, n, got)
					}
					if _, err := os.Stat(filepath.Join(top, "."+filepath.Base(change.dir)+".next")); err == nil {
						t.Errorf("killed at %s %d: a new directory is left for good", call, n)
					}
				}
				if kills == 0 {
					t.Errorf("%s is never called", call)
				}
			})
		}
	}
}

// killed runs mesh-release and kills it at its n-th call; false when it has fewer.
func killed(t *testing.T, call string, n int, args []string) bool {
	t.Helper()
	c := exec.Command("strace", append([]string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call,
		"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n), program}, args...)...)
	out, err := c.CombinedOutput()
	if err == nil {
		return false
	}
	s, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !(s.Signaled() && s.Signal() == syscall.SIGKILL || s.ExitStatus() == 137) {
		t.Fatalf("strace: %v\n%s", err, out)
	}
	return true
}
