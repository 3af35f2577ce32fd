package child

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInheritedDescriptorsEndHere: what this program was started with no program that
// it runs can read.
func TestInheritedDescriptorsEndHere(t *testing.T) {
	for what, keep := range map[string]func(){"by range": KeepDescriptors, "one by one": keepEach} {
		t.Run(what, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			fd, err := unix.Dup(int(r.Fd())) // as one that was inherited: without CLOEXEC
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			there := func() bool {
				t.Helper()
				res, err := Run(context.Background(), Command{Path: "/bin/sh", Args: []string{"-c", "ls /proc/self/fd"}})
				if err != nil {
					t.Fatal(err)
				}
				return strings.Contains("\n"+string(res.Stdout), "\n"+strconv.Itoa(fd)+"\n")
			}
			if !there() {
				t.Fatal("it is not handed on before, so this tests nothing")
			}
			if keep(); there() {
				t.Error("it is handed on")
			}
		})
	}
}
