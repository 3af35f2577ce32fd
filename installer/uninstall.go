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

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"golang.org/x/sys/unix"
)

// Uninstall takes away what install.json names. It refuses (kind Refused) while
// the host owns resources, unless they are to be kept; killed half way, it can
// be called again.
func Uninstall(ctx context.Context, o UninstallOptions) (UninstallSummary, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	u := &removal{o: o, summary: UninstallSummary{Removed: []string{}}}
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
	unlock, err := lock(o.Layout.State())
	if err != nil {
		return u.summary, fmt.Errorf("cannot uninstall: %w", err)
	}
	defer unlock()
	if err := u.run(ctx, owned > 0); err != nil {
		return u.summary, fmt.Errorf("cannot uninstall: %w", err)
	}
	return u.summary, nil
}

type removal struct {
	o       UninstallOptions
	rec     record
	summary UninstallSummary
}

// leftovers takes away what there is without a record: an install was killed
// before its first step, or an uninstall before its last.
func (u *removal) leftovers(ctx context.Context) error {
	l := u.o.Layout
	if err := sweep(l.InstallManifest()); err != nil {
		return fmt.Errorf("cannot uninstall: %w", err)
	}
	if _, err := os.Lstat(l.State()); err == nil && u.o.Purge {
		return u.purgeLeft(ctx)
	}
	if !rmdirOnly(l.State()) {
		return fault.Failedf("cannot uninstall: %q is not there, so no tarball was installed here", l.InstallManifest())
	}
	u.removed(l.State())
	return nil
}

// mayGo returns how many resources the host leaves behind, which is none unless
// that was asked for.
func (u *removal) mayGo(ctx context.Context) (owned int, err error) {
	if u.o.Owner == nil {
		return 0, nil
	}
	if owned, err = u.o.Owner.Owns(ctx); err != nil {
		return 0, fmt.Errorf("cannot uninstall: %w", err)
	}
	if owned > 0 && !u.o.KeepResources {
		return 0, fault.Refusedf("cannot uninstall: the host owns %d resources on this machine", owned).
			Hint("%s, or leave them unmanaged with --keep-resources", u.emptied())
	}
	if owned > 0 && u.o.Purge {
		return 0, fault.Usagef("cannot purge the state: it says which %d resources the host owns", owned).
			Hint("%s, or leave out --purge", u.emptied())
	}
	return owned, nil
}

// emptied says how to have the host own nothing: a node takes no declaration
// but its mesh's.
func (u *removal) emptied() string {
	if _, err := os.Lstat(u.o.Layout.HostIdentity()); err == nil {
		return "this machine is a node: undeclare on the control plane what is declared for it (mesh-controller undeclare NAME)"
	}
	return "apply an empty declaration first"
}

// run stops the host, then takes away what it is, and the record last, so that
// a second run finds what a first one left.
func (u *removal) run(ctx context.Context, processesStay bool) error {
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
	if m := findManager(l); m != "" {
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
	return u.directories(processesStay)
}

// purge takes the state away: store, identity, content.
func (u *removal) purge() error {
	l := u.o.Layout
	entries, err := os.ReadDir(l.State())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if path := filepath.Join(l.State(), e.Name()); path != l.InstallManifest() {
			if err := u.tree(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// purgeLeft takes away the state that an uninstall without --purge left.
func (u *removal) purgeLeft(ctx context.Context) error {
	l := u.o.Layout
	if _, err := u.mayGo(ctx); err != nil {
		return err
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
	if rmdirOnly(l.State()) {
		u.removed(l.State())
	}
	return nil
}

// stop ends the service for good, and refuses when a host runs all the same: it
// holds the lock of its store, which no stale file can fake.
func (u *removal) stop(ctx context.Context) error {
	if m := findManager(u.o.Layout); m != "" {
		if _, err := os.Lstat(u.o.Layout.Path(unitPath())); err == nil {
			if err := m.do(ctx, "disable", "--now", layout.HostUnit); err != nil {
				return err
			}
		}
	}
	f, err := os.Open(u.o.Layout.HostStore())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fault.Failedf("the host is running").Hint("%s", howToStop(f))
	}
	return nil
}

// socket removes what a host that ran, or was killed, left in /run.
func (u *removal) socket() error {
	path := u.o.Layout.HostSocket()
	if err := durable.Remove(path); err != nil {
		return err
	}
	return rmdir(filepath.Dir(path))
}

// file removes one file if it is still ours.
func (u *removal) file(f laid) error {
	path := u.o.Layout.Path(f.Path)
	if err := sweep(path); err != nil {
		return err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	have, _, err := look(path)
	if err != nil {
		return err
	}
	if !slices.Contains(f.SHA256, have) && !u.isHost(path, have) {
		u.kept(path, "it is not what was installed")
		return nil
	}
	if err := durable.Remove(path); err != nil {
		return err
	}
	u.removed(path)
	return nil
}

// sweep removes what a killed install may have left beside the file at path.
func sweep(path string) error {
	dir, base := filepath.Split(path)
	names := []string{durable.TempName(base)}
	if base == memberBinary {
		names = append(names, trialName, durable.TempName(trialName))
	}
	for _, name := range names {
		if err := durable.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// isHost recognises the host's binary after the host replaced itself: it is the
// proven copy, or the program that is being run to uninstall it.
func (u *removal) isHost(path, sum string) bool {
	if filepath.Base(path) != memberBinary || sum == "" {
		return false
	}
	if proven, _, err := look(u.o.Layout.Launcher()); err == nil && proven == sum {
		return true
	}
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false
	}
	fi, err := os.Lstat(path)
	return err == nil && os.SameFile(self, fi)
}

// tree removes a part of the host's own state whole. It is beside the durable
// door: nothing is lost when a power cut brings a part of it back, and the
// record still says that it is to go.
func (u *removal) tree(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	u.removed(path)
	return durable.SyncDir(filepath.Dir(path))
}

// directories removes the empty directories an install made, deepest first,
// and with the state directory the record, which is removed before it.
func (u *removal) directories(keepRecord bool) error {
	state := u.o.Layout.State()
	for _, dir := range slices.Backward(u.rec.Directories) {
		path := u.o.Layout.Path(dir)
		if path == state || isAbove(path, state) {
			continue
		}
		if err := rmdir(path); err != nil {
			return err
		}
	}
	if keepRecord {
		u.rec.Files = nil
		return u.rec.write(u.o.Layout)
	}
	if err := sweep(u.o.Layout.InstallManifest()); err != nil {
		return err
	}
	if err := durable.Remove(u.o.Layout.InstallManifest()); err != nil {
		return err
	}
	u.removed(u.o.Layout.InstallManifest())
	for _, dir := range slices.Backward(u.rec.Directories) {
		if path := u.o.Layout.Path(dir); path == state || isAbove(path, state) {
			if err := rmdir(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// isAbove reports whether dir is a parent of path.
func isAbove(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel) && rel != "."
}

// rmdir removes a directory if it is empty, and what a killed install made of it
// before it had its name. What else is in it is not ours, and no error.
func rmdir(path string) error {
	d, err := durable.OpenDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.SweepDead(); err != nil {
		return err
	}
	err = d.Rmdir(filepath.Base(path))
	for _, harmless := range []error{unix.ENOTEMPTY, unix.EEXIST, unix.ENOENT, unix.ENOTDIR, unix.EBUSY} {
		if errors.Is(err, harmless) {
			return nil
		}
	}
	return err
}

// rmdirOnly removes a directory that is there and empty, and reports whether it
// was.
func rmdirOnly(path string) bool {
	_, before := os.Lstat(path)
	if rmdir(path) != nil || before != nil {
		return false
	}
	_, after := os.Lstat(path)
	return errors.Is(after, fs.ErrNotExist)
}

func (u *removal) removed(path string) {
	u.summary.Removed = append(u.summary.Removed, u.machine(path))
	fmt.Fprintf(u.o.Out, "removed %s\n", u.machine(path))
}

func (u *removal) kept(path, why string) {
	u.summary.Kept = append(u.summary.Kept, u.machine(path))
	fmt.Fprintf(u.o.Out, "kept %s: %s\n", u.machine(path), why)
}

func (u *removal) machine(path string) string {
	return filepath.Join("/", path[len(u.o.Layout.Root):])
}
