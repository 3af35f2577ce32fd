package file

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxAccounts bounds /etc/passwd and /etc/group, in bytes.
const maxAccounts = 16 << 20

// unknown is an owner or group there is no account for yet.
type unknown struct{ what, name, table string }

func (u *unknown) Error() string {
	return fmt.Sprintf("there is no %s %q in %s yet", u.what, u.name, u.table)
}

func (k *Kind) user(name string) (int, error)  { return k.account("user", name, "/etc/passwd") }
func (k *Kind) group(name string) (int, error) { return k.account("group", name, "/etc/group") }

// account returns the number of an account. It reads the table under the root
// and asks no name service: that would be the machine's the host runs on, not
// the root's, and may hang.
func (k *Kind) account(what, name, table string) (int, error) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return int(n), nil
	}
	if name == "root" {
		return 0, nil
	}
	root, err := k.openRoot()
	if err != nil {
		return 0, err
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, "."+table, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, unix.ENOENT) {
		return 0, &unknown{what, name, table}
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read %q: %w", table, err)
	}
	f := os.NewFile(uintptr(fd), table)
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxAccounts))
	lines.Buffer(nil, 1<<20) // a group may have many members
	for lines.Scan() {
		// passwd(5) and group(5) agree on the first three fields.
		fields := strings.SplitN(lines.Text(), ":", 4)
		if len(fields) < 3 || fields[0] != name {
			continue
		}
		n, err := strconv.ParseUint(fields[2], 10, 32)
		if err != nil || n == 1<<32-1 {
			return 0, fmt.Errorf("the %s %q has no number in %s", what, name, table)
		}
		return int(n), nil
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("cannot read %q: %w", table, err)
	}
	return 0, &unknown{what, name, table}
}
