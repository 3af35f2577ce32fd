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
//
// With nox.jump=set or nox.jump=suspend it does something else: it looks whether a
// host that runs notices that the clock was set, or that the machine slept. With
// nox.vfat=1 the disk is a vfat, and the tests of files are run on it.
package main

import (
	"fmt"
	"os"
)

func main() {
	say, err := prepare()
	if err == nil {
		err = task(say)
	}
	if say != nil {
		fmt.Fprintf(say, "\nnox: failed %v\n", err)
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	powerOff()
}
