package place

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// The extended attributes that people give a directory: their own, and the access
// lists of acl(5). Others are the machine's (a label of SELinux, a layer's mark), and
// come from where the directory is.
const userPrefix = "user."

var accessLists = []string{"system.posix_acl_access", "system.posix_acl_default"}

// maxAttributes bounds a list of names, and a value (xattr(7)), in bytes.
const maxAttributes = 64 << 10

// keepAttributes gives the directory to the extended attributes of from, and takes
// from it what lists it has from its parent.
func keepAttributes(from, to *durable.Dir) error {
	had, err := attributes(from)
	if err == nil {
		err = dropAttributes(to, had)
	}
	if err != nil {
		return err
	}
	value := make([]byte, maxAttributes)
	for _, name := range had {
		n, err := unix.Fgetxattr(from.FD(), name, value)
		if err == nil {
			err = unix.Fsetxattr(to.FD(), name, value[:n], 0)
		}
		if err != nil {
			return fmt.Errorf("cannot keep the attribute %q of %q: %w", name, from.Name(), err)
		}
	}
	return nil
}

// dropAttributes removes those that are not to be kept.
func dropAttributes(d *durable.Dir, keep []string) error {
	has, err := attributes(d)
	if err != nil {
		return err
	}
	for _, name := range has {
		if slices.Contains(keep, name) {
			continue
		}
		if err := unix.Fremovexattr(d.FD(), name); err != nil {
			return fmt.Errorf("cannot remove the attribute %q of %q: %w", name, d.Name(), err)
		}
	}
	return nil
}

// attributes returns the names of those that people give.
func attributes(d *durable.Dir) ([]string, error) {
	b := make([]byte, maxAttributes)
	n, err := unix.Flistxattr(d.FD(), b)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the attributes of %q: %w", d.Name(), err)
	}
	var names []string
	for name := range strings.SplitSeq(string(b[:n]), "\x00") {
		if strings.HasPrefix(name, userPrefix) || slices.Contains(accessLists, name) {
			names = append(names, name)
		}
	}
	return names, nil
}
