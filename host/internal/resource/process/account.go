package process

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
)

// maxAccounts bounds what is read of passwd(5) and group(5).
const maxAccounts = 16 << 20

type account struct {
	uid, gid uint32
	groups   []uint32
}

// account looks up a user in the files of the machine (or of the root). A
// number needs no entry: without one its group is the same number, and it has
// no further groups.
//
// Under a root, a host that is not root's cannot become anybody else: there,
// root means the user it runs as.
func (k *Kind) account(user string) (account, error) {
	if user == "" || user == "root" || user == "0" {
		if !privileged() && !k.layout.IsMachine() {
			return account{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
		}
		return account{}, nil
	}
	var a account
	var name string
	number, nerr := strconv.ParseUint(user, 10, 32)
	err := eachEntry(k.layout.Path("/etc/passwd"), 4, func(f []string) {
		uid, err1 := strconv.ParseUint(f[2], 10, 32)
		gid, err2 := strconv.ParseUint(f[3], 10, 32)
		matches := f[0] == user || nerr == nil && err1 == nil && uid == number
		if name == "" && matches && err1 == nil && err2 == nil {
			name, a.uid, a.gid = f[0], uint32(uid), uint32(gid)
		}
	})
	if err != nil {
		return a, fmt.Errorf("cannot look up user %q: %w", user, err)
	}
	if name == "" {
		if nerr != nil {
			return a, fmt.Errorf("cannot look up user %q: there is no such user", user)
		}
		return account{uid: uint32(number), gid: uint32(number)}, nil
	}
	if !privileged() {
		return a, nil // it could not set groups, and has its own
	}
	err = eachEntry(k.layout.Path("/etc/group"), 4, func(f []string) {
		gid, err := strconv.ParseUint(f[2], 10, 32)
		if err == nil && uint32(gid) != a.gid && slices.Contains(strings.Split(f[3], ","), name) {
			a.groups = append(a.groups, uint32(gid))
		}
	})
	slices.Sort(a.groups)
	if err != nil {
		return a, fmt.Errorf("cannot look up the groups of user %q: %w", user, err)
	}
	return a, nil
}

// eachEntry calls f with the fields of each line that has at least that many.
// A file that is not there has no lines.
func eachEntry(path string, fields int, f func([]string)) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(io.LimitReader(file, maxAccounts))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if entry := strings.Split(lines.Text(), ":"); len(entry) >= fields {
			f(entry)
		}
	}
	return lines.Err()
}
