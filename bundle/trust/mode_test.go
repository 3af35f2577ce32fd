package trust

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestTheMemoryOfReleasesIsItsOwnersAlone, whatever the umask: who can write it
// decides whom the machine believes.
func TestTheMemoryOfReleasesIsItsOwnersAlone(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(t.TempDir(), "trust.json")
	if err := Record(path, nil, map[string]uint64{"a": 1}); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}
