package child

import (
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// KeepDescriptors keeps from every program that is run afterwards the descriptors
// that this one was started with, but for the first three: what lies behind them may
// be a secret. Go's own are never handed on. Call it first in main.
func KeepDescriptors() {
	// Linux 5.11; flags that are not known are EINVAL (close_range(2)).
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	keepEach()
}

// keepEach does the same one by one, on older kernels.
func keepEach() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // no /proc, no way to find them
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
