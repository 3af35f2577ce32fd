//go:build machine

package machinetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// TestKindsOnAMachine runs the machine tests of the resource kinds where they
// belong: as root on a machine of their own, with systemd.
func TestKindsOnAMachine(t *testing.T) {
	machine.Require(t)
	dir := t.TempDir()
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	lab := machine.Start(t)
	m := lab.Boot("kinds")
	for _, kind := range []string{"process", "unit"} {
		bin := filepath.Join(dir, kind+".test")
		build := exec.Command("go", "test", "-c", "-tags", "machine", "-o", bin, "./host/internal/resource/"+kind)
		build.Dir, build.Env = string(bytes.TrimSpace(root)), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("cannot build the tests of %s: %v\n%s", kind, err, out)
		}
		m.Put("/root/"+kind+".test", 0o755, bin)
		out, err := m.Run(t.Context(), "env", "NOX_REQUIRE_MACHINE=1", "/root/"+kind+".test", "-test.v", "-test.run", "Systemd|Machine|Unit")
		t.Logf("%s", out)
		if err != nil || !strings.Contains(out, "--- PASS") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
