//go:build machine

package walk

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/lab/walk/look"
)

// put makes the thing at a path below the root, as a person would with rm, cp,
// chown and chmod: nothing of it is the host's way.
func put(root, path string, t look.Thing) error {
	at := root + path
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	var err error
	switch t.Kind {
	case 'f':
		err = os.WriteFile(at, []byte(t.Text), 0o600)
	case 'd':
		err = os.Mkdir(at, 0o700)
	case 'l':
		err = os.Symlink(t.Text, at)
	default:
		err = fmt.Errorf("no %c is put anywhere", t.Kind)
	}
	if err == nil {
		err = os.Lchown(at, int(t.UID), int(t.GID))
	}
	if err == nil && t.Kind != 'l' {
		err = chmod(at, t.Mode)
	}
	return err
}

// setDirectory gives a directory the owner and mode of t.
func setDirectory(root, path string, t look.Thing) error {
	return errors.Join(os.Chown(root+path, int(t.UID), int(t.GID)), chmod(root+path, t.Mode))
}

// chmod takes the bits of chmod(2), which os.Chmod has elsewhere.
func chmod(path string, mode uint32) error {
	m := os.FileMode(mode & 0o777)
	for bit, is := range map[uint32]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if mode&bit != 0 {
			m |= is
		}
	}
	return os.Chmod(path, m)
}

// drift changes something that the host owns, or put back what was lost, on the
// machine and in the world alike; it says what. d is in force.
func (r *run) drift(d declaration) (string, error) {
	paths := slices.Sorted(maps.Keys(r.world.owned))
	for p := range r.start {
		if _, owned := r.world.owned[p]; !owned && d.at(p) >= 0 {
			paths = append(paths, p, p) // refused, and still somebody's
		}
	}
	if len(paths) == 0 {
		return "", nil
	}
	slices.Sort(paths)
	p := pick(r.dice, paths)
	have, there := r.world.tree[p]
	_, owned := r.world.owned[p]
	free := d.at(p) >= 0 && !d.needed(d.resources[d.at(p)].id)
	what := r.IntN(9)
	if !owned {
		what = r.IntN(5) // what can be undone
	}
	become := func(how string, t look.Thing) (string, error) {
		r.world.tree[p] = t
		return fmt.Sprintf("%s %s", p, how), put(r.root, p, t)
	}
	switch {
	case !there:
		return "", nil
	case what == 0:
		if r.world.foreign(p) {
			return "", nil // not ours to delete
		}
		for in := range r.world.tree {
			if in == p || strings.HasPrefix(in, p+"/") {
				delete(r.world.tree, in)
			}
		}
		return p + " deleted", os.RemoveAll(r.root + p)
	case what == 1 && have.Kind != 'l':
		have.Mode = (have.Mode &^ 0o7000) ^ 0o111
		r.inPlace(p, have)
		return fmt.Sprintf("%s made %04o", p, have.Mode), chmod(r.root+p, have.Mode)
	case what == 2:
		have.UID, have.GID = 99, 98
		if have.Kind == 'f' {
			have.Mode &= 0o777 // chown(2) takes the rest
		}
		r.inPlace(p, have)
		return p + " given to another user", os.Lchown(r.root+p, 99, 98)
	case have.Kind == 'd' && p == box && owned && what < 6:
		t := look.Thing{Kind: 'f', Mode: 0o600, Text: "theirs"}
		r.world.tree[box+"/theirs"] = t
		return "something put into " + box, put(r.root, box+"/theirs", t)
	case have.Kind == 'd':
		if owned && free && !r.world.within(p) {
			return become("became a file", look.Thing{Kind: 'f', Mode: 0o644, Text: "a file\n"})
		}
		return "", nil
	case what < 5: // in place: the inode stays
		if have.Kind != 'f' {
			return become("leads elsewhere", look.Thing{Kind: 'l', Text: "elsewhere"})
		}
		have.Text += "edited\n"
		have.Mode &= 0o777 // write(2) takes the rest
		r.inPlace(p, have)
		f, err := os.OpenFile(r.root+p, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.WriteString("edited\n")
			err = errors.Join(err, f.Close(), chmod(r.root+p, have.Mode))
		}
		return p + " edited", err
	case what == 5:
		return become("became a symlink", look.Thing{Kind: 'l', Text: "/etc/walk/other"})
	case what == 6 && have.Kind == 'f':
		second := fmt.Sprintf("/etc/walk/second-%d", r.round)
		r.world.tree[second] = have
		return p + " got a second name " + second, os.Link(r.root+p, r.root+second)
	case what == 7 && free:
		return become("became a directory", look.Thing{Kind: 'd', Mode: 0o755})
	default:
		return become("became another file", look.Thing{Kind: 'f', Mode: 0o600, Text: "somebody's\n"})
	}
}

// inPlace notes what becomes of the file p, and of its other names.
func (r *run) inPlace(p string, t look.Thing) {
	is, err := os.Lstat(r.root + p)
	for other := range r.world.tree {
		if fi, oerr := os.Lstat(r.root + other); err == nil && oerr == nil && os.SameFile(is, fi) {
			r.world.tree[other] = t
		}
	}
	r.world.tree[p] = t
}

// foreign reports whether something that is at p or in it is not the host's.
func (w world) foreign(p string) bool {
	for in := range w.tree {
		if _, ours := w.owned[in]; !ours && (in == p || strings.HasPrefix(in, p+"/")) {
			return true
		}
	}
	return false
}

// cleanUp is a person who takes away what the host left to a person: what was
// kept beside, what was put there, what a declaration was refused for. What was
// there at the start and is lost is put back. all says that nothing stays.
func (r *run) cleanUp(d declaration, all bool) (did []string, err error) {
	paths := slices.Sorted(maps.Keys(r.world.tree))
	slices.Reverse(paths)
	for _, p := range paths {
		_, was := r.start[p]
		o, owned := r.world.owned[p]
		have := r.world.tree[p]
		strange := !was && !owned || owned && have.Kind != o.want.Kind
		if !strange || !all && !r.chance(0.3) || r.world.within(p) {
			continue
		}
		delete(r.world.tree, p)
		if err := os.Remove(r.root + p); err != nil {
			return did, err
		}
		did = append(did, p+" taken away by a person")
	}
	for _, p := range slices.Sorted(maps.Keys(r.start)) {
		_, owned := r.world.owned[p]
		is, there := r.world.tree[p]
		if owned || d.at(p) >= 0 || there && is == r.start[p] || !all && !r.chance(0.3) {
			continue
		}
		if there && r.world.within(p) && is.Kind != 'd' {
			continue
		}
		r.world.tree[p] = r.start[p]
		restore := put
		if there && is.Kind == 'd' && r.start[p].Kind == 'd' {
			restore = setDirectory
		}
		if err := restore(r.root, p, r.start[p]); err != nil {
			return did, err
		}
		did = append(did, p+" put back by a person")
	}
	return did, nil
}

// disturb is drift in the middle: the host was killed at something, and comes
// back to a file that is edited or gone. Only what is declared, and was nobody's
// before, is touched: the end is known then.
func (r *run) disturb(d declaration, refused map[string]bool) (string, error) {
	i, what := r.IntN(max(1, len(d.resources))), r.IntN(3)
	if i >= len(d.resources) || d.resources[i].process != nil || refused[d.resources[i].id] {
		return "", nil
	}
	p := d.resources[i].path
	if o, owned := r.world.owned[p]; r.start[p] != (look.Thing{}) && (!owned || o.before != nil) {
		return "", nil
	}
	for other := range r.world.tree {
		if strings.HasPrefix(other, "/etc/walk/second-") {
			return "", nil // it may be another name of p
		}
	}
	is, err := look.At(r.root + p)
	if errors.Is(err, fs.ErrNotExist) || is.Kind != 'f' || d.resources[i].thing.Kind == 'd' {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	switch what {
	case 0:
		return p + " deleted in the middle", os.Remove(r.root + p)
	case 1:
		return p + " made 0111 in the middle", os.Chmod(r.root+p, 0o111)
	}
	return p + " edited in the middle", os.WriteFile(r.root+p, []byte("edited in the middle\n"), 0o600)
}
