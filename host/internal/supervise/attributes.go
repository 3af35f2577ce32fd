package supervise

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// copyAttributes gives the file to what from has: its extended attributes, with the
// capabilities and the ACL among them (xattr(7)).
func copyAttributes(to, from *os.File) error {
	here := func(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
	list, err := grow(func(b []byte) (int, error) { return syscall.Listxattr(here(from), b) })
	if errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(list), "\x00") {
		switch {
		case name == "", name == "security.ima", name == "security.evm": // which sign the old content
			continue
		case name == "security.selinux" && os.Geteuid() != 0: // the policy labels the new file
			continue
		}
		value, err := grow(func(b []byte) (int, error) { return syscall.Getxattr(here(from), name, b) })
		if errors.Is(err, syscall.ENODATA) {
			continue
		}
		if err == nil {
			err = syscall.Setxattr(here(to), name, value, 0)
		}
		if err != nil {
			return fmt.Errorf("the extended attribute %q cannot be kept: %w", name, err)
		}
	}
	return nil
}

// grow calls read with more room until what is read fits; at most 64 KiB, which is
// the kernel's bound.
func grow(read func([]byte) (int, error)) ([]byte, error) {
	b := make([]byte, 1<<10)
	for {
		n, err := read(b)
		if errors.Is(err, syscall.ERANGE) && len(b) < 1<<16 {
			b = make([]byte, 8*len(b))
			continue
		}
		if err != nil {
			return nil, err
		}
		return b[:n], nil
	}
}
