package powercut

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// state is the folder of the host's own state, which is not of the tree.
const state = "/var/lib/nox-mesh"

// A Verdict says what a disk has.
type Verdict struct {
	// Faults are what must not be, a line each.
	Faults []string
	// Old and New are how many things are not as in the newest generation, and
	// as in no other; Same is those that are as in the newest and in an older.
	Old, New, Same int
	// Leftovers are temporary files.
	Leftovers []string
}

func (v *Verdict) fault(format string, args ...any) {
	v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
}

var temporary = regexp.MustCompile(`^\.nox-.*\.tmp$`)

// Judge looks at the disk that is mounted at root. Each path must be, entirely,
// as in one of the generations that it may be of, the newest last, which for
// some is not to be there; nothing else may be there but temporary files.
func Judge(root string, may ...Tree) (Verdict, error) {
	var v Verdict
	found, err := look(root, &v)
	if err != nil {
		return v, err
	}
	expected := map[string]bool{"/": true, path.Dir(state): true, path.Dir(path.Dir(state)): true}
	names := map[string]bool{}
	for _, t := range may {
		for p := range t.Things {
			names[p] = true
			for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
				expected[dir] = true
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(names)) {
		v.judge(p, found, may)
		delete(found, p)
	}
	for _, p := range slices.Sorted(maps.Keys(found)) {
		if found[p].Kind != Directory || !expected[p] {
			v.fault("%s is there, a %s that no generation has", p, found[p].Kind)
		}
	}
	return v, nil
}

// judge is about one path.
func (v *Verdict) judge(p string, found map[string]Thing, may []Tree) {
	have, there := found[p]
	as := 0
	newest := false
	for i, t := range may {
		want, wanted := t.Things[p]
		if wanted == there && (!wanted || want == have) {
			as++
			newest = i == len(may)-1
		}
	}
	switch {
	case as == 0:
		v.fault("%s %s", p, wrong(p, have, there, may))
	case newest && as > 1:
		v.Same++
	case newest:
		v.New++
	default:
		v.Old++
	}
}

// wrong says how what is there is of no generation.
func wrong(p string, have Thing, there bool, may []Tree) string {
	if !there {
		return "is missing"
	}
	if have.Kind == File && have.Content == "" {
		return "is empty"
	}
	said := []string{}
	for _, t := range may {
		want, wanted := t.Things[p]
		switch {
		case !wanted:
			said = append(said, fmt.Sprintf("generation %d has none", t.Generation))
		case want.Kind != have.Kind:
			said = append(said, fmt.Sprintf("generation %d has a %s", t.Generation, want.Kind))
		case want.Content != have.Content:
			said = append(said, fmt.Sprintf("%d of the %d bytes of generation %d", alike(have.Content, want.Content), len(want.Content), t.Generation))
		case want.Target != have.Target:
			said = append(said, fmt.Sprintf("generation %d leads to %q", t.Generation, want.Target))
		default:
			said = append(said, fmt.Sprintf("generation %d with mode %04o of %d:%d", t.Generation, want.Mode, want.UID, want.GID))
		}
	}
	return fmt.Sprintf("is of no generation: a %s of %d bytes, mode %04o of %d:%d, target %q; %s", have.Kind, len(have.Content), have.Mode, have.UID, have.GID, have.Target, strings.Join(said, ", "))
}

// alike is how many bytes are the same from the beginning.
func alike(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// look reads all of the disk but the host's own state, of which only what a
// crash left is of interest.
func look(root string, v *Verdict) (map[string]Thing, error) {
	out := map[string]Thing{}
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		p := strings.TrimPrefix(at, root)
		if p == "" {
			p = "/"
		}
		switch {
		case err != nil:
			// A file that the disk cannot read is a fault of what was written.
			v.fault("%s cannot be read: %v", p, err)
			return nil
		case p == "/lost+found":
			return fs.SkipDir
		case temporary.MatchString(d.Name()):
			v.Leftovers = append(v.Leftovers, p)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case p == state, strings.HasPrefix(p, state+"/"):
			return nil
		}
		thing, err := thingAt(at)
		if err != nil {
			v.fault("%s cannot be read: %v", p, err)
			return nil
		}
		out[p] = thing
		return nil
	})
	return out, err
}

func thingAt(at string) (Thing, error) {
	var st unix.Stat_t
	if err := unix.Lstat(at, &st); err != nil {
		return Thing{}, err
	}
	t := Thing{Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid}
	var err error
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		var b []byte
		t.Kind = File
		b, err = os.ReadFile(at)
		t.Content = string(b)
	case unix.S_IFLNK:
		t.Kind, t.Mode = Symlink, 0
		t.Target, err = os.Readlink(at)
	case unix.S_IFDIR:
		t.Kind = Directory
	default:
		err = errors.New("it is neither a file nor a symlink nor a directory")
	}
	return t, err
}
