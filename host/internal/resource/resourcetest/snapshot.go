package resourcetest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
)

// A Tree is everything below a root at one moment: for each path what it is,
// and what would show that it was touched.
type Tree map[string]entry

type entry struct {
	// what: type, mode, owner, content or target.
	what string
	// touched: inode and times. A write of the same bytes shows here.
	touched string
}

// Snapshot reads the tree below root.
func Snapshot(t *testing.T, root string) Tree {
	t.Helper()
	tree := Tree{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		st := fi.Sys().(*syscall.Stat_t)
		e := entry{
			what:    fmt.Sprintf("%v %d:%d", fi.Mode(), st.Uid, st.Gid),
			touched: fmt.Sprintf("inode %d, mtime %v, ctime %v", st.Ino, st.Mtim, st.Ctim),
		}
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			e.what += " -> " + target
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			e.what += fmt.Sprintf(" %x", sha256.Sum256(b))
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		tree[name] = e
		return nil
	})
	if err != nil {
		t.Fatalf("cannot read the tree: %v", err)
	}
	return tree
}

// Unchanged fails the test when anything below root was so much as touched
// since the snapshot.
func (before Tree) Unchanged(t *testing.T, root string) {
	t.Helper()
	before.compare(t, Snapshot(t, root), func(e entry) string { return e.what + ", " + e.touched })
}

// SameContent fails the test when what is below root is not what it was.
// Directories may have come: a host makes the ones it needs and keeps them.
func (before Tree) SameContent(t *testing.T, root string) {
	t.Helper()
	after := Snapshot(t, root)
	for name, e := range after {
		if _, was := before[name]; !was && strings.HasPrefix(e.what, "d") {
			delete(after, name)
		}
	}
	before.compare(t, after, func(e entry) string { return e.what })
}

// Names are the paths of the tree, sorted.
func (before Tree) Names() []string {
	var names []string
	for name := range before {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (before Tree) compare(t *testing.T, after Tree, text func(entry) string) {
	t.Helper()
	for name, e := range before {
		now, ok := after[name]
		switch {
		case !ok:
			t.Errorf("%s is gone", name)
		case text(e) != text(now):
			t.Errorf("%s changed:\nwas %s\nnow %s", name, text(e), text(now))
		}
	}
	for name, e := range after {
		if _, ok := before[name]; !ok {
			t.Errorf("%s has come: %s", name, text(e))
		}
	}
}
