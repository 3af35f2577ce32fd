package file

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// maxLinks is how many symlinks one path may lead through, as in
// path_resolution(7).
const maxLinks = 40

// A place is a name in an open directory: whoever replaces a parent by a
// symlink afterwards leads nobody elsewhere.
type place struct {
	path string
	dir  *durable.Dir
	name string
	// names leads from the root to dir, with no symlink in it.
	names []string
	// missing names the directories between dir and name that do not exist.
	missing []string
}

func (p *place) close() { _ = p.dir.Close() }

// real returns the path of the place with no symlink in it but itself.
func (p *place) real() string {
	return "/" + path.Join(path.Join(p.names...), path.Join(p.missing...), p.name)
}

// parents returns the paths of the missing directories, the outermost first.
func (p *place) parents() []string {
	var out []string
	dir := path.Dir(p.path)
	for range p.missing {
		out = append([]string{dir}, out...)
		dir = path.Dir(dir)
	}
	return out
}

// open opens the directory that name lies in, below the root. Most paths hold
// no symlink and cost one openat2(2); the others are walked.
func (k *Kind) open(name string) (*place, error) {
	root, err := k.openRoot()
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	p := &place{path: name, name: path.Base(name)}
	dir := path.Dir(name)
	fd, err := unix.Openat2(root, "."+dir, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		// A symlink, or something whose name the error shall tell.
		w := &walk{trusted: k.trusted, stack: []int{root}}
		fd, p.missing, err = w.to(dir)
		p.names = w.reached
	} else if dir != "/" {
		p.names = strings.Split(dir[1:], "/")
	}
	if err != nil {
		return nil, err
	}
	p.dir = durable.DirOf(fd, k.layout.Path(dir))
	p.dir.Share(k.barrier)
	return p, nil
}

func (k *Kind) openRoot() (int, error) {
	root, err := unix.Open(k.layout.Path("/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("the root directory %q: %w", k.layout.Path("/"), err)
	}
	return root, nil
}

// trusted reports whether what uid made may lead the host: it could do the
// same without it.
func (k *Kind) trusted(uid uint32) bool { return uid == 0 || uid == k.euid }

// A walk goes through a path one name at a time, each opened below the one
// before and none followed by the kernel, so that every symlink is looked at
// before it leads anywhere. openat2(2) has no such rule; fs.protected_symlinks
// (proc_sys_fs(5)) knows sticky directories only.
type walk struct {
	trusted func(uid uint32) bool
	// stack holds the open directories from the root (not ours to close) to
	// here; ".." goes back in it and never above the root.
	stack []int
	names []string
	links int
	// reached are the names from the root to what was opened.
	reached []string
}

// A step is a name still to go through, and the symlink that said so.
type step struct{ name, link string }

func steps(p, link string) []step {
	var out []step
	for name := range strings.SplitSeq(p, "/") {
		if name != "" && name != "." {
			out = append(out, step{name, link})
		}
	}
	return out
}

func (w *walk) here() int { return w.stack[len(w.stack)-1] }

func (w *walk) name(last string) string { return "/" + path.Join(path.Join(w.names...), last) }

func (w *walk) back() {
	if len(w.stack) > 1 {
		_ = unix.Close(w.here())
		w.stack = w.stack[:len(w.stack)-1]
		w.names = w.names[:len(w.names)-1]
	}
}

// to opens the directory dir, or the deepest that is there and the names that
// are missing below it.
func (w *walk) to(dir string) (fd int, missing []string, err error) {
	defer func() {
		w.reached = slices.Clone(w.names)
		for len(w.stack) > 1 {
			w.back()
		}
	}()
	todo := steps(dir, "")
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		if s.name == ".." {
			w.back()
			continue
		}
		fd, err := unix.Openat(w.here(), s.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			if s.link != "" {
				// Making it might fill the disk below a mount that is not there.
				return -1, nil, fmt.Errorf("the symlink %q on its way leads to %q, which does not exist", s.link, w.name(s.name))
			}
			missing = append(missing, s.name)
			for _, s := range todo {
				missing = append(missing, s.name)
			}
			break
		}
		if err != nil {
			return -1, nil, fmt.Errorf("%q on its way: %w", w.name(s.name), cause(err))
		}
		todo, err = w.step(fd, s.name, todo)
		if err != nil {
			return -1, nil, err
		}
	}
	fd, err = unix.Openat(w.here(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, nil, fmt.Errorf("%q on its way: %w", w.name(""), cause(err))
	}
	return fd, missing, nil
}

// step enters the directory fd, or puts where the symlink fd points in front of
// todo. It owns fd.
func (w *walk) step(fd int, name string, todo []step) ([]step, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("%q on its way: %w", w.name(name), cause(err))
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		w.stack, w.names = append(w.stack, fd), append(w.names, name)
		return todo, nil
	}
	defer unix.Close(fd)
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return nil, fmt.Errorf("%q on its way is %s, not a directory", w.name(name), kindOf(st.Mode).article())
	}
	link := w.name(name)
	if err := notProcess(fd, link); err != nil {
		return nil, err
	}
	if err := w.mayFollow(link, st.Uid); err != nil {
		return nil, err
	}
	if w.links++; w.links > maxLinks {
		return nil, fmt.Errorf("the symlink %q on its way: %w", link, unix.ELOOP)
	}
	target, err := readlink(fd, "")
	if err != nil {
		return nil, fmt.Errorf("the symlink %q on its way: %w", link, cause(err))
	}
	if path.IsAbs(target) {
		for len(w.stack) > 1 {
			w.back()
		}
	}
	return append(steps(target, link), todo...), nil
}

// mayFollow holds the rule for symlinks on the way: a user's ~/.config -> /etc
// must not lead a root service.
func (w *walk) mayFollow(link string, uid uint32) error {
	const remedy = "declare the place it leads to, or let root own the link and its directory"
	if !w.trusted(uid) {
		return fault.Refusedf("the symlink %q on its way belongs to user %d and is not followed", link, uid).Hint(remedy)
	}
	var dir unix.Stat_t
	if err := unix.Fstat(w.here(), &dir); err != nil {
		return fmt.Errorf("%q on its way: %w", w.name(""), cause(err))
	}
	// The group bits are the mask where there is an ACL (acl(5)), so this sees
	// writers that only an ACL names.
	if !w.trusted(dir.Uid) || dir.Mode&0o022 != 0 {
		return fault.Refusedf("the symlink %q on its way lies in a directory where others may write and is not followed", link).Hint(remedy)
	}
	return nil
}
