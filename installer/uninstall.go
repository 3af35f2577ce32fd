package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// Uninstall takes away what install.json names. It refuses (kind Refused) while
// the host owns resources, unless they are to be kept; killed half way, it can
// be called again. A dry one says what it would do, and does nothing.
func Uninstall(ctx context.Context, o UninstallOptions) (UninstallSummary, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	u := &uninstall{o, removal{layout: o.Layout, out: o.Out, dry: o.DryRun, summary: UninstallSummary{Removed: []string{}}}}
	if err := onlyRoot("uninstall", o.Layout); err != nil {
		return u.summary, err
	}
	if err := guardedState(o.Layout); err != nil {
		return u.summary, fmt.Errorf("cannot uninstall: %w", err)
	}
	rec, ok, err := readRecord(o.Layout)
	if err != nil {
		return u.summary, err
	}
	if !ok {
		return u.summary, u.leftovers(ctx)
	}
	u.rec = rec
	if err := o.Layout.Inside(rec.parents(o.Layout)...); err != nil {
		return u.summary, fmt.Errorf("cannot uninstall: %w", err)
	}
	owned, err := u.mayGo(ctx)
	if err != nil {
		return u.summary, err
	}
	left, err := u.leftProcesses()
	if err != nil {
		return u.summary, fmt.Errorf("cannot uninstall: %w", err)
	}
	unlock, err := lock(o.Layout.State())
	if err != nil {
		return u.summary, fmt.Errorf("cannot uninstall: %w", err)
	}
	defer unlock()
	if err := u.run(ctx, owned > 0 || len(left) > 0); err != nil {
		return u.summary, fmt.Errorf("cannot uninstall: %w", err)
	}
	return u.summary, nil
}

// An uninstall is the removal of all.
type uninstall struct {
	o UninstallOptions
	removal
}

// leftovers takes away what there is without a record: an install was killed
// before its first step, or an uninstall before its last.
func (u *uninstall) leftovers(ctx context.Context) error {
	l := u.o.Layout
	if by, ok := packaged(l); ok {
		return fault.Refusedf("cannot uninstall: a package owns the host on this machine (%q)", by).
			Hint("remove it with the package manager, which keeps the state")
	}
	if err := u.sweep(l.InstallManifest()); err != nil {
		return fmt.Errorf("cannot uninstall: %w", err)
	}
	if _, err := os.Lstat(l.State()); err == nil && u.o.Purge {
		return u.purgeLeft(ctx)
	}
	if u.dry {
		if left, err := os.ReadDir(l.State()); err == nil && len(left) == 0 {
			u.removed(l.State())
			return nil
		}
	} else if rmdirOnly(l.State()) {
		u.removed(l.State())
		return nil
	}
	err := fault.Failedf("cannot uninstall: %q is not there, so no tarball was installed here", l.InstallManifest())
	if _, there := os.Lstat(l.State()); errors.Is(there, fs.ErrNotExist) {
		return err
	}
	return err.Hint("what is in %q is the state of a host that is gone: --purge takes it away", l.State())
}

// mayGo returns how many resources the host leaves behind, which is none unless
// that was asked for.
func (u *uninstall) mayGo(ctx context.Context) (owned int, err error) {
	if u.o.Owner == nil {
		return 0, nil
	}
	if owned, err = u.o.Owner.Owns(ctx); err != nil {
		return 0, fmt.Errorf("cannot uninstall: %w", err)
	}
	if owned > 0 && !u.o.KeepResources {
		return 0, fault.Refusedf("cannot uninstall: the host owns %d resources on this machine", owned).
			Hint("take them away first (mesh-host retire), or leave them unmanaged with --keep-resources")
	}
	if owned > 0 && u.o.Purge {
		return 0, fault.Usagef("cannot purge the state: it says which %d resources the host owns", owned).
			Hint("take them away first (mesh-host retire), or leave out --purge")
	}
	return owned, nil
}

// leftProcesses names the processes that stay, owned or left unmanaged: what keeps
// each up runs from the launcher, and has its folder in the state.
func (u *uninstall) leftProcesses() (names []string, err error) {
	dir := u.o.Layout.Processes()
	folders, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range folders {
		if f.Name()[0] == '.' {
			continue // the rest of one that was removed
		}
		if _, err := os.Lstat(filepath.Join(dir, f.Name(), definitionFile)); err == nil {
			names = append(names, f.Name())
		}
	}
	if len(names) > 0 && u.o.Purge {
		return nil, fault.Usagef("the state cannot be purged: what keeps the process %q up runs from it", names[0]).
			Hint("end it (systemctl disable --now nox-%s) and remove %q, or leave out --purge", names[0], filepath.Join(dir, names[0]))
	}
	return names, nil
}

// definitionFile is in the folder of each process.
const definitionFile = "definition.json"

// run stops the host, then takes away what it is, and the record last, so that
// a second run finds what a first one left.
func (u *uninstall) run(ctx context.Context, processesStay bool) error {
	l := u.o.Layout
	if err := u.stop(ctx); err != nil {
		return err
	}
	if err := u.socket(); err != nil {
		return err
	}
	for _, f := range slices.Backward(u.rec.Files) {
		if err := u.file(f); err != nil {
			return err
		}
	}
	if m := findManager(l); m != "" && !u.dry {
		if err := m.do(ctx, "daemon-reload"); err != nil {
			return err
		}
	}
	if processesStay {
		// The shims of the processes that stay run from it.
		u.kept(l.LauncherDir(), "the processes that stay need it")
	} else if err := u.tree(l.LauncherDir()); err != nil {
		return err
	}
	if u.o.Purge {
		if err := u.purge(); err != nil {
			return err
		}
	}
	return u.end(processesStay)
}

// end removes the directories that are empty now, and the record: with the state
// directory, which is removed after it.
func (u *uninstall) end(keepRecord bool) error {
	l := u.o.Layout
	if err := u.directories(func(path string) bool { return path != l.State() && !isAbove(path, l.State()) }); err != nil {
		return err
	}
	if keepRecord {
		u.rec.Files = nil
		if u.dry {
			return nil
		}
		return u.rec.write(l)
	}
	if err := u.forget(); err != nil {
		return err
	}
	return u.directories(func(path string) bool { return path == l.State() || isAbove(path, l.State()) })
}

// purge takes the state away: store, identity, content.
func (u *uninstall) purge() error {
	l := u.o.Layout
	entries, err := os.ReadDir(l.State())
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(l.State(), e.Name())
		if path == l.InstallManifest() || u.dry && path == l.LauncherDir() {
			continue
		}
		if err := u.tree(path); err != nil {
			return err
		}
	}
	return nil
}

// purgeLeft takes away the state that an uninstall without --purge left.
func (u *uninstall) purgeLeft(ctx context.Context) error {
	l := u.o.Layout
	if _, err := u.mayGo(ctx); err != nil {
		return err
	}
	if _, err := u.leftProcesses(); err != nil {
		return fmt.Errorf("cannot uninstall: %w", err)
	}
	unlock, err := lock(l.State())
	if err != nil {
		return fmt.Errorf("cannot uninstall: %w", err)
	}
	defer unlock()
	if err := u.stop(ctx); err != nil {
		return fmt.Errorf("cannot uninstall: %w", err)
	}
	if err := u.purge(); err != nil {
		return fmt.Errorf("cannot uninstall: %w", err)
	}
	if u.dry || rmdirOnly(l.State()) {
		u.removed(l.State())
	}
	return nil
}

// stop ends the service for good, and refuses when a host runs all the same: it
// holds the lock of its store, which no stale file can fake.
func (u *uninstall) stop(ctx context.Context) error {
	m := findManager(u.o.Layout)
	_, err := os.Lstat(u.o.Layout.Path(unitPath()))
	managed := m != "" && err == nil
	if managed && !u.dry {
		if err := m.do(ctx, "disable", "--now", layout.HostUnit); err != nil {
			return err
		}
	}
	pid, runs, err := runningHost(u.o.Layout)
	if err != nil || !runs || u.dry && managed && (pid == 0 || ofUnit(pid)) {
		return err
	}
	return fault.Failedf("the host is running").Hint("%s", howToStop(pid))
}
