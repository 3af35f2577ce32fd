//go:build machine

package powercut

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// needs skips the test, with the reason, where no machine can be cut; with
// NOX_REQUIRE_MACHINE=1 it fails.
func needs(t *testing.T) {
	t.Helper()
	why := ""
	switch {
	case runtime.GOARCH != "amd64":
		why = "it needs amd64"
	case os.Geteuid() != 0:
		why = "it needs root, to mount the disk"
	}
	for _, program := range []string{"qemu-system-x86_64", "mke2fs", "e2fsck", "mount", "umount"} {
		if _, err := exec.LookPath(program); err != nil && why == "" {
			why = program + " is not here: lab/tools.sh installs it"
		}
	}
	if why == "" && kernel(t) == "" {
		why = "there is no kernel for a machine: lab/tools.sh unpacks one"
	}
	if why == "" {
		return
	}
	if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
		t.Fatalf("no power to cut: %s", why)
	}
	t.Skipf("no power to cut: %s", why)
}

// kernel is the path of the newest kernel that lab/tools.sh unpacked, or "".
func kernel(t *testing.T) string {
	t.Helper()
	dir, err := tool.Dir()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "linux-image-cloud-amd64/boot/vmlinuz-*"))
	if err != nil || len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return found[len(found)-1]
}
