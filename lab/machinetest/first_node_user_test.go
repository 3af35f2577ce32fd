//go:build machine

package machinetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/lab/firstnode"
)

// TestFirstNodeWithoutRootOrSystemd is `make first-node`, twice, and
// `make first-node-down`: it needs no machine at all.
func TestFirstNodeWithoutRootOrSystemd(t *testing.T) {
	parent, err := os.MkdirTemp("", "nox-first-node-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	// The test may be root's, whose control plane is another user.
	if err := os.Chmod(parent, 0o711); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "node")
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := firstnode.Command(t.Context(), append(args, "--dir", dir), cli.Stdio{In: &bytes.Buffer{}, Out: &out, Err: &out}); err != nil {
			t.Fatalf("mesh-lab %v: %v\n%s", args, err, &out)
		}
		return out.String()
	}
	// Should the test fail in between, nothing shall go on running.
	t.Cleanup(func() {
		_ = firstnode.Command(t.Context(), []string{"down", "--dir", dir}, cli.Stdio{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	})
	t.Log(run("up"))
	if got := run("up"); !strings.Contains(got, "is up already") || !strings.Contains(got, "enrolled") {
		t.Errorf("up again says:\n%s", got)
	}
	if got := run("status"); !strings.Contains(got, "mesh-controller") {
		t.Errorf("status says:\n%s", got)
	}
	run("down")
	exes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range exes {
		if target, err := os.Readlink(exe); err == nil && strings.HasPrefix(target, dir) {
			t.Errorf("%s still runs as %s", target, exe)
		}
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}

// TestFirstNodeOfAnOrdinaryUser is the same for somebody who is not root: no
// owner is applied, and every process is that user's.
func TestFirstNodeOfAnOrdinaryUser(t *testing.T) {
	dist := release(t)
	top, err := os.MkdirTemp("", "nox-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	program, from, home := filepath.Join(top, "mesh-lab"), filepath.Join(top, "dist"), filepath.Join(top, "home")
	build := exec.Command("go", "build", "-o", program, "../cmd/mesh-lab")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const nobody = 65534
	for _, err := range []error{
		os.Chmod(top, 0o755), os.CopyFS(from, os.DirFS(dist)), os.Mkdir(home, 0o700), os.Chown(home, nobody, nobody),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(program, append(args, "--dir", filepath.Join(home, "node"))...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
		cmd.Dir = home
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("mesh-lab %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	t.Cleanup(func() { run("down") })
	t.Log(run("up", "--from", from))
	if got := run("status"); !strings.Contains(got, "enrolled") {
		t.Errorf("status says:\n%s", got)
	}
}
