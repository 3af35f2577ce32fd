package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// modules of the kernel are needed for a vfat, in this order: nothing here loads
// one that is asked for.
var modules = []string{"fat", "nls_cp437", "nls_ascii", "nls_utf8", "vfat"}

// fileSystem is what the disk has, and how it is mounted.
func fileSystem() (name, options string, err error) {
	if vfat, err := option("nox.vfat"); err != nil || vfat == "" {
		return "ext4", "", err
	}
	for _, m := range modules {
		f, err := os.Open("/" + m + ".ko")
		if err != nil {
			return "", "", err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil {
			return "", "", fmt.Errorf("cannot load the module %s: %w", m, err)
		}
	}
	return "vfat", "umask=022", nil
}

// tested runs the tests of files on the disk:
//
//	nox: done 1    they hold
func tested(say io.Writer) error {
	test := exec.Command("/file.test", "-test.v", "-test.run", "VFAT")
	test.Env = []string{"PATH=/", "TMPDIR=/tmp", "NOX_FILE_TEST_VFAT=" + root}
	out, err := test.CombinedOutput()
	fmt.Fprintf(say, "%s\n", out)
	if err != nil {
		return err
	}
	fmt.Fprintln(say, "nox: done 1")
	select {} // until lifetime is over
}
