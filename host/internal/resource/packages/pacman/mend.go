package pacman

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// Mend makes of what an interrupted run left something that pacman can go on
// with. before is what was installed as that run began, nil when nobody knows;
// nobody may hold the lock.
//
// What is listed is what is there: the files of the old version and of the new
// one, as far as they exist. pacman had found nobody else's at these places
// when it began.
func (m *Manager) Mend(ctx context.Context, name string, before *database.Package) error {
	c, err := m.config()
	if err != nil {
		return err
	}
	dirs, err := m.entries(c, name)
	if err != nil {
		return err
	}
	var all []*entry
	for _, d := range dirs {
		e, err := readEntry(d)
		if err != nil {
			return err
		}
		all = append(all, e)
	}
	whole := len(all) == 1 && all[0].broken() == ""
	if len(all) == 0 && !m.left(before) {
		return nil
	}
	if !whole {
		if err := m.complete(c, name, all, before); err != nil {
			return fmt.Errorf("cannot mend the entry of %q in the database of pacman: %w", name, err)
		}
	}
	if before == nil || before.Installed {
		return nil
	}
	// The first installation of it: its scriptlet is to see one again, and not
	// an upgrade. Where it cannot be removed it stays, and is installed over.
	if err := m.run(ctx, "-R", "--noscriptlet", "--", name); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// left reports whether files are there that nobody owns any more: of a package
// that was killed between its old entry and its new one.
func (m *Manager) left(before *database.Package) bool {
	if before == nil || !before.Installed {
		return false
	}
	for _, f := range before.Files {
		if fi, err := os.Lstat(m.layout.Path(f.Path)); err == nil && !fi.IsDir() {
			return true
		}
	}
	return false
}

// complete writes one whole entry, and takes away the others.
func (m *Manager) complete(c *conf, name string, all []*entry, before *database.Package) error {
	paths := map[string]bool{}
	add := func(p string) {
		p = database.Clean(p)
		fi, err := os.Lstat(m.layout.Path(p))
		if err != nil || p == "/" {
			return
		}
		if fi.IsDir() {
			p += "/"
		}
		paths[p[1:]] = true
	}
	if before != nil {
		for _, f := range before.Files {
			add(f.Path)
		}
	}
	var keep *entry
	for _, e := range all {
		if keep == nil || e.described && !keep.described {
			keep = e
		}
		for _, p := range e.paths {
			add(p)
		}
		for _, f := range e.tree {
			add(f.Path)
		}
	}
	if keep == nil {
		keep = &entry{dir: filepath.Join(m.local(c), name+"-"+before.Version), name: name, version: before.Version}
	}
	if err := durable.MkdirAll(keep.dir, 0o755); err != nil {
		return err
	}
	if !keep.described {
		desc := fmt.Sprintf("%%NAME%%\n%s\n\n%%VERSION%%\n%s\n\n", name, keep.version)
		if err := durable.WriteFile(filepath.Join(keep.dir, "desc"), []byte(desc), 0o644); err != nil {
			return err
		}
	}
	list := "%FILES%\n" + strings.Join(slices.Sorted(maps.Keys(paths)), "\n") + "\n\n"
	if err := durable.WriteFile(filepath.Join(keep.dir, "files"), []byte(list), 0o644); err != nil {
		return err
	}
	for _, e := range all {
		if e != keep {
			if err := os.RemoveAll(e.dir); err != nil {
				return err
			}
		}
	}
	// Half an mtree says of files that they are cut which are not.
	if keep.cut {
		return durable.Remove(filepath.Join(keep.dir, "mtree"))
	}
	return nil
}
