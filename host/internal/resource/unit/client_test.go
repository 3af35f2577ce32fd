package unit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestU05ALostConnectionIsTold(t *testing.T) {
	broken := &net.OpError{Op: "write", Net: "unix", Err: os.NewSyscallError("write", syscall.EPIPE)}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errLost, true}, {broken, true}, {fmt.Errorf("more: %w", broken), true},
		{errors.New("Unit nox.service not found."), false}, {os.NewSyscallError("connect", syscall.ENOENT), false},
	} {
		if got := ended(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
