package store

import (
	"os"
	"syscall"
	"testing"
)

// TestTheStoreIsItsOwnersAlone, whatever the umask: the last declaration is in it,
// with the secrets that it declares.
func TestTheStoreIsItsOwnersAlone(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	_, path := begin(t)
	if fi, err := os.Stat(path); err != nil || fi.Mode() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}
