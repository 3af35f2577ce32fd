package publisher

import (
	"os"
	"strings"
	"testing"
)

// TestVersions: a version that some artefact could not be named with is wrong
// usage, said before anything is compiled or written.
func TestVersions(t *testing.T) {
	d := newDesk(t)
	// What gets past the version ends at the keys, at once.
	ask := func(version string) result {
		return d.mesh("build", "--source", "src", "--version", version, "--counter", counterOne, "--keys", "nowhere", "--out", "o")
	}
	for _, version := range []string{one, "0.0.0", "10.20.30", "1.0.0-rc.1", "1.0.0-rc1", "1.0.0-alpha", "1.0.0-RC.10", "2026.11.30"} {
		d.fault(version, ask(version), 1, `there is no "1.root.json" in "nowhere"`)
	}
	for _, version := range []string{
		"", "v1.0.0", "1", "1.0", "1.0.0.0", "01.0.0", "1.0.0+meta", "1.0.0-rc.1+meta", "1:1.0.0", "1.0.0-", "-1.0.0", "1.0.0-rc-1",
		" 1.0.0", "1.0.0 ", "1. 0.0", "1.0.0\n", "1.0.0\t", "\x1b[2J1.0.0", "1.0.0-é", "١.0.0", "１.0.0", "1.0.0/..", "../1.0.0", "1.0.0_1", "1.0.0~rc1",
		"latest", strings.Repeat("1", 300) + ".0.0", "1.0.0-" + strings.Repeat("a", 300),
	} {
		d.fault(version, ask(version), 2, "is not a version; give --version 1.0.0 or 1.0.0-rc.1")
	}
	if _, err := os.Lstat(d.path("o")); err == nil {
		t.Error("a directory was made")
	}
}

// TestVersionsThatPacmanWouldSortWrongly are semver, and no pkgver.
func TestVersionsThatPacmanWouldSortWrongly(t *testing.T) {
	d := newDesk(t)
	for _, version := range []string{"1.0.0-1", "1.0.0-1a", "1.0.0-0.3.7", "1.0.0-rc.1.2", "1.0.0-rc.01", "1.0.0-x.7.z"} {
		r := d.mesh("build", "--source", "src", "--version", version, "--counter", counterOne, "--keys", "nowhere", "--out", "o")
		d.fault(version, r, 2, "; name it as in 1.0.0-rc.1")
	}
}
