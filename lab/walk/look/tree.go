// Package look is the walk's checker: it looks at a folder that stands for a
// machine, and at the processes that run from it, and says in words how that
// differs from what it shall be. It believes the kernel and nobody else: it
// imports the standard library alone, and asks no program of the product.
package look

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A Thing is what is at a path.
type Thing struct {
	// Kind is 'f' for a file, 'd' for a directory, 'l' for a symlink; another
	// one is named by its letter in ls(1).
	Kind byte
	// Mode is the permission bits with setuid, setgid and sticky; a symlink has
	// none.
	Mode     uint32
	UID, GID uint32
	// Text is the content of a file, or where a symlink leads.
	Text string
}

func (t Thing) String() string {
	return fmt.Sprintf("%c %04o %d:%d %q", t.Kind, t.Mode, t.UID, t.GID, t.Text)
}

var letters = map[uint32]byte{
	syscall.S_IFREG: 'f', syscall.S_IFDIR: 'd', syscall.S_IFLNK: 'l', syscall.S_IFIFO: 'p', syscall.S_IFSOCK: 's',
	syscall.S_IFBLK: 'b', syscall.S_IFCHR: 'c',
}

// At looks at one path.
func At(path string) (Thing, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return Thing{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	t := Thing{Kind: letters[st.Mode&syscall.S_IFMT], Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid}
	var err error
	switch t.Kind {
	case 'f':
		var b []byte
		b, err = os.ReadFile(path)
		t.Text = string(b)
	case 'l':
		t.Mode = 0
		t.Text, err = os.Readlink(path)
	}
	return t, err
}

// walk calls f for every path below root, as the machine would spell it, but
// for what is in private.
func walk(root string, private []string, f func(path string) error) error {
	return filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		path := strings.TrimPrefix(p, root)
		if slices.Contains(private, path) {
			return fs.SkipDir
		}
		return f(path)
	})
}

// Tree is all that is below root, but for the folders in private.
func Tree(root string, private ...string) (map[string]Thing, error) {
	tree := map[string]Thing{}
	err := walk(root, private, func(path string) (err error) {
		tree[path], err = At(root + path)
		return err
	})
	return tree, err
}

// A Stamp changes when a path is written to, replaced, or given other
// attributes, if only to be as before.
type Stamp struct {
	Device, Inode, Links uint64
	Size                 int64
	Modified, Changed    syscall.Timespec
}

// Stamps are those of all that is below root, but for the folders in private.
// The time of a directory is among them: what was made and removed again shows.
func Stamps(root string, private ...string) (map[string]Stamp, error) {
	stamps := map[string]Stamp{}
	err := walk(root, private, func(path string) error {
		var st syscall.Stat_t
		if err := syscall.Lstat(root+path, &st); err != nil {
			return err
		}
		stamps[path] = Stamp{st.Dev, st.Ino, uint64(st.Nlink), st.Size, st.Mtim, st.Ctim}
		return nil
	})
	return stamps, err
}

// Touched says what differs between two looks.
func Touched(before, now map[string]Stamp) []string {
	var out []string
	for _, p := range sorted(before, now) {
		was, had := before[p]
		is, has := now[p]
		switch {
		case !had:
			out = append(out, fmt.Sprintf("%s was made", p))
		case !has:
			out = append(out, fmt.Sprintf("%s was taken away", p))
		case was != is:
			out = append(out, fmt.Sprintf("%s was touched: %+v, was %+v", p, is, was))
		}
	}
	return out
}

// Files says how what is below root differs from want. Nothing of a temporary
// name may be anywhere, in private neither.
func Files(root string, want map[string][]Thing, private ...string) []string {
	have, err := Tree(root, private...)
	if err != nil {
		return []string{fmt.Sprintf("cannot look: %v", err)}
	}
	var out []string
	for _, p := range sorted(want, have) {
		may, wanted := want[p]
		is, there := have[p]
		switch {
		case !wanted:
			out = append(out, fmt.Sprintf("%s is left over: %v", p, is))
		case !there:
			out = append(out, fmt.Sprintf("%s is missing, want %v", p, may))
		case !slices.Contains(may, is):
			out = append(out, fmt.Sprintf("%s is %v, want %v", p, is, may))
		}
	}
	err = walk(root, nil, func(path string) error {
		if name := filepath.Base(path); strings.HasPrefix(name, ".nox-") {
			out = append(out, fmt.Sprintf("%s is a temporary file", path))
		}
		return nil
	})
	if err != nil {
		out = append(out, fmt.Sprintf("cannot look: %v", err))
	}
	return out
}

// sorted are the keys of both.
func sorted[A, B any](a map[string]A, b map[string]B) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
