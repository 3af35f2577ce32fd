package file

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

const acl = "system.posix_acl_access"

// An attribute is an extended attribute; see xattr(7).
type attribute struct {
	name  string
	value []byte
}

// keptAttributes returns the attributes of the file have that go on to what
// replaces it.
func (k *Kind) keptAttributes(p *place, have thing, w *wish) ([]attribute, error) {
	kept, _, err := k.attributes(p, have, w)
	return kept, err
}

// lossNote says which attributes of the file have are lost when it is replaced.
func (k *Kind) lossNote(p *place, have thing, w *wish) (string, error) {
	_, lost, err := k.attributes(p, have, w)
	if err != nil || len(lost) == 0 {
		return "", err
	}
	return "replacing the file loses its extended attributes: " + strings.Join(lost, ", "), nil
}

func (k *Kind) attributes(p *place, have thing, w *wish) (kept []attribute, lost []string, err error) {
	if have.Kind != file {
		return nil, nil, nil
	}
	f, err := p.openFile(have)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	fd := int(f)
	names, err := list(fd)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "listxattr", Path: p.path, Err: err}
	}
	// An ACL is the owner's to give. One that a stranger gave himself must not
	// open what root puts in the place.
	trusted := k.trusted(have.UID) || w.uid != durable.Keep && have.UID == uint32(w.uid)
	for _, name := range names {
		switch {
		case name == "security.ima" || name == "security.evm":
			// They sign the old content.
		case name == "security.selinux" && !k.root:
			// The policy labels the new file.
		case w.Kind != file, !trusted, !k.root && name != acl && !strings.HasPrefix(name, "user."):
			lost = append(lost, name)
		default:
			value, err := get(fd, name)
			if errors.Is(err, unix.ENODATA) {
				continue
			}
			if err != nil {
				return nil, nil, &fs.PathError{Op: "getxattr", Path: p.path, Err: err}
			}
			kept = append(kept, attribute{name, value})
		}
	}
	return kept, lost, nil
}

// attributes are being copied to the new file fd.
type attributes struct {
	fd   int
	kept []attribute
}

// setACL sets the ACL, and a mode under which it gives nobody anything.
func (x *attributes) setACL() error {
	for _, a := range x.kept {
		if a.name != acl {
			continue
		}
		if err := x.set(a); err != nil {
			return err
		}
		if err := unix.Fchmod(x.fd, 0o600); err != nil {
			return &fs.PathError{Op: "chmod", Err: err}
		}
	}
	return nil
}

// setRest sets the owner, and then what the kernel takes away with a write and
// a change of owner.
func (x *attributes) setRest(uid, gid int) error {
	if len(x.kept) == 0 {
		return nil
	}
	if uid != durable.Keep || gid != durable.Keep {
		if err := unix.Fchown(x.fd, uid, gid); err != nil {
			return &fs.PathError{Op: "chown", Err: err}
		}
	}
	for _, a := range x.kept {
		if a.name != acl {
			if err := x.set(a); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *attributes) set(a attribute) error {
	if err := unix.Fsetxattr(x.fd, a.name, a.value, 0); err != nil {
		return fmt.Errorf("the extended attribute %q cannot be kept: %w", a.name, cause(err))
	}
	return nil
}

// list returns the names of the attributes; none where the file system has no
// attributes.
func list(fd int) ([]string, error) {
	b, err := grow(func(b []byte) (int, error) { return unix.Flistxattr(fd, b) })
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range bytes.SplitSeq(b, []byte{0}) {
		if len(name) > 0 {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

func get(fd int, name string) ([]byte, error) {
	return grow(func(b []byte) (int, error) { return unix.Fgetxattr(fd, name, b) })
}

// grow calls read with more room until what is read fits; at most 64 KiB, which
// is the kernel's bound on a value and on a list.
func grow(read func([]byte) (int, error)) ([]byte, error) {
	b := make([]byte, 1<<10)
	for {
		n, err := read(b)
		if errors.Is(err, unix.ERANGE) && len(b) < 1<<16 {
			b = make([]byte, 8*len(b))
			continue
		}
		if err != nil {
			return nil, err
		}
		return b[:n], nil
	}
}
