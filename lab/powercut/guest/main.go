// Command guest is the first process of the machine whose power is cut: all
// that there is besides the host. It mounts the disk, and brings it with the
// host from declaration to declaration, saying on the console what it is at:
//
//	nox: applying 7
//	nox: done 7
//
// On the kernel's command line, nox.first=7 names the first declaration;
// nox.lazy=1 makes a kernel that writes nothing to the disk before it must, so
// that a cut loses all that was not synced; nox.unsynced=fsync,syncfs names
// system calls that do nothing: with them taken away, what the host says is done
// is not.
package main

import (
	"fmt"
	"os"
)

func main() {
	say, err := prepare()
	if err == nil {
		err = work(say)
	}
	if say != nil {
		fmt.Fprintf(say, "\nnox: failed %v\n", err)
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	powerOff()
}
