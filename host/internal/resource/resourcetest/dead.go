package resourcetest

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// Dead mounts a file system whose server never answers: who asks it hangs, until
// the server is taken away. Where none can be had the test is skipped.
func Dead(t *testing.T, dir string) (away func()) {
	t.Helper()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err == nil {
		if err = syscall.Mount("dead", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse.Fd())); err != nil {
			fuse.Close()
		}
	}
	if err != nil {
		t.Skipf("nothing that hangs can be had here: %v", err)
	}
	over := false
	away = func() {
		if over {
			return
		}
		over = true
		fuse.Close()
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(away)
	return away
}
