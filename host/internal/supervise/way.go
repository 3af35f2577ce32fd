package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many symlinks one path may lead through (path_resolution(7)).
const maxLinks = 40

// openWay opens the directory dir below root, one name after the other. A symlink
// is followed only when root made it (or who we are) where nobody else may write, as
// the host does for a file it writes: what a user put there leads us nowhere.
func openWay(root, dir string) (*os.Root, error) {
	top, err := os.OpenRoot(filepath.Join("/", root))
	if err != nil {
		return nil, err
	}
	stack := []*os.Root{top}
	here := func() *os.Root { return stack[len(stack)-1] }
	back := func() {
		if len(stack) > 1 {
			here().Close()
			stack = stack[:len(stack)-1]
		}
	}
	todo, links := parts(dir), 0
	for len(todo) > 0 && err == nil {
		var next *os.Root
		var target string
		name := todo[0]
		todo = todo[1:]
		if name == ".." {
			back()
			continue
		}
		if next, target, err = step(here(), name); err != nil {
			break
		}
		if next != nil {
			stack = append(stack, next)
			continue
		}
		if links++; links > maxLinks {
			err = syscall.ELOOP
		}
		for filepath.IsAbs(target) && len(stack) > 1 {
			back()
		}
		todo = append(parts(target), todo...)
	}
	last := here()
	for _, d := range stack {
		if d != last || err != nil {
			d.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	return last, nil
}

func parts(path string) []string {
	var out []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			out = append(out, name)
		}
	}
	return out
}

// step opens the directory name in here, or returns where the symlink leads.
func step(here *os.Root, name string) (next *os.Root, target string, err error) {
	fi, err := here.Lstat(name)
	if err != nil {
		return nil, "", err
	}
	if fi.Mode()&os.ModeSymlink != 0 {
		dir, err := here.Stat(".")
		if err != nil {
			return nil, "", err
		}
		if !ours(fi) || !ours(dir) || dir.Mode().Perm()&0o022 != 0 {
			return nil, "", fmt.Errorf("the symlink %q on its way is not root's alone and is not followed", name)
		}
		target, err = here.Readlink(name)
		return nil, target, err
	}
	if next, err = here.OpenRoot(name); err != nil {
		return nil, "", err
	}
	now, err := next.Stat(".")
	if err == nil && !os.SameFile(fi, now) {
		err = errors.New("its directory was replaced meanwhile")
	}
	if err != nil {
		next.Close()
		return nil, "", err
	}
	return next, "", nil
}

// ours: root's, or that of who we are, who could do the same without it.
func ours(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}
