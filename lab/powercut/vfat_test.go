//go:build machine

package powercut

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestF04OnAVFAT runs the test of files on a vfat, in a machine whose kernel has
// one, with a disk that is one.
func TestF04OnAVFAT(t *testing.T) {
	needs(t)
	if _, err := exec.LookPath("mkfs.vfat"); err != nil {
		if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
			t.Fatal(err)
		}
		t.Skip("mkfs.vfat is not here: lab/tools.sh installs it")
	}
	home := newHome(t)
	archive, _ := software(t, home)
	out := bytes.NewBuffer(archive)
	test := filepath.Join(home, "file.test")
	build := exec.Command("go", "test", "-c", "-o", test, "github.com/nox-mesh/nox-mesh/host/internal/resource/file")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the tests: %v\n%s", err, msg)
	}
	files := []string{test}
	for _, m := range []string{"fat/fat", "fat/vfat", "nls/nls_cp437", "nls/nls_ascii", "nls/nls_utf8"} {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(kernel(t)), "../lib/modules/*/kernel/fs", m+".ko"))
		if err != nil || len(found) == 0 {
			t.Fatalf("the kernel has no module %s (%v): lab/tools.sh unpacks them", m, err)
		}
		files = append(files, found[len(found)-1])
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pack(out, filepath.Base(name), 0o100755, b)
	}
	pack(out, "etc", 0o040755, nil)
	pack(out, "etc/passwd", 0o100644, []byte("root:x:0:0::/:/bin/sh\n"))
	pack(out, "TRAILER!!!", 0, nil)
	initrd, disk := filepath.Join(home, "initrd"), filepath.Join(home, "disk")
	if err := os.WriteFile(initrd, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command("mkfs.vfat", "-C", disk, "65536").CombinedOutput(); err != nil {
		t.Fatalf("mkfs.vfat: %v\n%s", err, msg)
	}
	v := boot(t, kernel(t), initrd, disk, "nox.vfat=1")
	v.await("done", 1)
	v.cut()
	if said := v.console(); !strings.Contains(said, "--- PASS: TestF04VFAT") || strings.Contains(said, "--- SKIP") {
		t.Errorf("no test was run:\n%s", said)
	}
}
