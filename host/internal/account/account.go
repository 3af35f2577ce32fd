// Package account turns the names of users and groups into numbers.
//
// It reads /etc/passwd and /etc/group under the layout's root and asks no name
// service: that would be the machine's the host runs on, not the root's, and
// may hang. A number needs no entry.
package account

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// maxTable bounds /etc/passwd and /etc/group, in bytes; maxLine one entry: a
// group may have many members.
const (
	maxTable = 16 << 20
	maxLine  = 1 << 20
)

// ErrUnknown is in the chain of the error for a name there is no account for
// (yet).
var ErrUnknown = errors.New("no such account")

// A User is what a process runs as.
type User struct {
	UID, GID uint32
	// Groups are the further groups, sorted.
	Groups []uint32
}

// UID returns the number of a user.
func UID(l layout.Layout, name string) (int, error) {
	if name == "root" {
		return 0, nil
	}
	return number(l, "/etc/passwd", "user", name)
}

// GID returns the number of a group.
func GID(l layout.Layout, name string) (int, error) {
	if name == "root" {
		return 0, nil
	}
	return number(l, "/etc/group", "group", name)
}

func number(l layout.Layout, table, what, name string) (int, error) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return int(n), nil
	}
	found := -1
	err := each(l, table, func(f []string) {
		// passwd(5) and group(5) agree on the first three fields; the first
		// entry of a name counts.
		if n, err := strconv.ParseUint(f[2], 10, 32); err == nil && found < 0 && f[0] == name {
			found = int(n)
		}
	})
	if err == nil && found < 0 {
		err = fmt.Errorf("%w: there is no %s %q in %s yet", ErrUnknown, what, name, table)
	}
	return found, err
}

// Lookup returns what a process of that user runs as: its entry and its
// groups. A number without an entry has a group of the same number, and no
// further ones; root needs no entry and has none either.
func Lookup(l layout.Layout, name string) (User, error) {
	var u User
	if name == "root" || name == "0" {
		return u, nil
	}
	n, nerr := strconv.ParseUint(name, 10, 32)
	login, found := "", false
	err := each(l, "/etc/passwd", func(f []string) {
		uid, err1 := strconv.ParseUint(f[2], 10, 32)
		gid, err2 := strconv.ParseUint(f[3], 10, 32)
		if !found && err1 == nil && err2 == nil && (f[0] == name || nerr == nil && uid == n) {
			found, login, u.UID, u.GID = true, f[0], uint32(uid), uint32(gid)
		}
	})
	if err != nil {
		return u, err
	}
	if !found && nerr != nil {
		return u, fmt.Errorf("%w: there is no user %q in /etc/passwd yet", ErrUnknown, name)
	}
	if !found {
		return User{UID: uint32(n), GID: uint32(n)}, nil
	}
	err = each(l, "/etc/group", func(f []string) {
		gid, err := strconv.ParseUint(f[2], 10, 32)
		if err == nil && uint32(gid) != u.GID && slices.Contains(strings.Split(f[3], ","), login) {
			u.Groups = append(u.Groups, uint32(gid))
		}
	})
	slices.Sort(u.Groups)
	return u, err
}

// each calls f with the fields of each entry of a table that has at least
// four. A table that is not there has none. Symlinks lead nowhere out of the
// root.
func each(l layout.Layout, table string, f func([]string)) error {
	root, err := unix.Open(l.Path("/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", table, err)
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, "."+table, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", table, err)
	}
	file := os.NewFile(uintptr(fd), table)
	defer file.Close()
	lines := bufio.NewScanner(io.LimitReader(file, maxTable))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if fields := strings.Split(lines.Text(), ":"); len(fields) >= 4 {
			f(fields)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read %q: %w", table, err)
	}
	return nil
}
