// Package tool finds the programs of others that are built from source for the
// tests: cosign, GoReleaser, oras.
//
// lab/tools.sh builds them, each of one version, into a folder that is kept from
// run to run; tests take those and no others, so a verdict is about the version
// that tools.sh names. It takes minutes, so on a person's computer they may well
// not be there: a test that needs one is skipped then, with the reason, and fails
// where NOX_REQUIRE_MACHINE=1 says that nothing may be missing.
package tool

import (
	"os"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// Dir is the folder with the programs; it need not be there.
func Dir() (string, error) {
	dir, err := machine.CacheDir()
	return filepath.Join(dir, "tools"), err
}

// Need returns the path of a program, or skips the test.
func Need(t machine.TB, program string) string {
	t.Helper()
	dir, err := Dir()
	if err != nil {
		t.Fatalf("%v", err)
	}
	path := filepath.Join(dir, program)
	if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
		return path
	}
	if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
		t.Fatalf("%s is not here: lab/tools.sh --build builds it", program)
	}
	t.Skipf("%s is not here: lab/tools.sh --build builds it", program)
	return ""
}
