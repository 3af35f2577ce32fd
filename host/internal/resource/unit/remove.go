package unit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// Remove implements resource.Kind.
func (k *Kind) Remove(ctx context.Context, record resource.Record) (declaration.Outcome, string, error) {
	if err := k.supported(ctx); err != nil {
		return "", "", err
	}
	r, err := declaration.FromSpec("recorded", record.Spec)
	if err != nil {
		return "", "", err
	}
	v, err := k.see(ctx, r.Unit, &record)
	why, err := stays(r.Unit, record, err)
	var notes []string
	if err == nil && v != nil {
		ctx, cancel := context.WithTimeout(ctx, k.jobTime)
		defer cancel()
		notes, err = k.takeAway(ctx, v)
	}
	if err != nil {
		return "", "", fmt.Errorf("cannot remove unit %q: %w", r.Unit.Name, err)
	}
	if why != "" {
		return declaration.Released, strings.Join(append([]string{why}, notes...), "; "), nil
	}
	return declaration.Removed, strings.Join(notes, "; "), nil
}

// stays says why a unit that is no longer declared is let go of, or "". seen is
// the error of see: what is refused now is not even given back.
func stays(u *declaration.Unit, record resource.Record, seen error) (why string, err error) {
	switch {
	case fault.KindOf(seen) == fault.Refused:
		return fmt.Sprintf("it is left as it is: %v", seen), nil
	case seen == nil && (record.Adopted || len(wishes(u)) == 0):
		return "it was there before the host owned it, and is as it was found", nil
	}
	return "", seen
}

// Parting says why Remove would release a unit.
func (k *Kind) Parting() func(context.Context, resource.Record) (string, error) {
	return func(ctx context.Context, record resource.Record) (string, error) {
		if err := k.supported(ctx); err != nil {
			return "", err
		}
		r, err := declaration.FromSpec("recorded", record.Spec)
		if err != nil {
			return "", err
		}
		_, err = k.see(ctx, r.Unit, &record)
		why, err := stays(r.Unit, record, err)
		if err != nil {
			err = fmt.Errorf("cannot remove unit %q: %w", r.Unit.Name, err)
		}
		return why, err
	}
}

// takeAway stops, disables, deletes; then it gives back what was there.
func (k *Kind) takeAway(ctx context.Context, v *view) (notes []string, err error) {
	u := v.unit
	runs := !template(u.Name) && (v.status.runs() || v.status.Active == "deactivating")
	// Whose text is taken away was the host's in everything.
	if runs && !v.before.Active && (u.Active != nil || whole(u)) {
		if err := k.job(ctx, stop, u.Name); err != nil {
			return nil, err
		}
		runs = false
	}
	unlinked, err := k.unlinkBefore(ctx, v)
	if err != nil {
		return nil, err
	}
	notes, written, err := k.giveFilesBack(v)
	if err != nil {
		return nil, err
	}
	if whole(u) && !v.before.Known {
		if err := k.sweepLinks(u.Name); err != nil {
			return nil, err
		}
	}
	linked, err := k.linkBefore(ctx, v, unlinked)
	if err != nil {
		return nil, err
	}
	if unlinked || written || linked {
		if err := k.systemd.reload(ctx); err != nil {
			return nil, err
		}
	}
	err = k.runBefore(ctx, v, runs, written)
	return notes, errors.Join(err, k.forget(ctx, v), k.clearPending(u.Name))
}

// forget has systemd forget a unit that failed and is gone: it would go on listing
// it among those that failed.
func (k *Kind) forget(ctx context.Context, v *view) error {
	if !whole(v.unit) || v.before.Known || template(v.unit.Name) {
		return nil
	}
	st, err := k.systemd.look(ctx, v.unit.Name)
	if err != nil || st.Load != "not-found" || st.Active != "failed" {
		return err
	}
	return k.systemd.resetFailed(ctx, v.unit.Name)
}

// unlinkBefore disables the unit while its text is still there, unless it was
// enabled when the host came, by the same text.
func (k *Kind) unlinkBefore(ctx context.Context, v *view) (bool, error) {
	u := v.unit
	if u.Enabled == nil && !whole(u) {
		return false, nil
	}
	if v.state == "" {
		var err error
		if v.state, err = k.systemd.fileState(ctx, u.Name); err != nil {
			return false, err
		}
	}
	same := v.before.Known && v.state == v.before.Enabled && v.things[u.Path()].same(v.before.Files[u.Path()])
	if same || v.state != "enabled" && v.state != "enabled-runtime" {
		return false, nil
	}
	return true, k.unlink(ctx, u.Name, v.state)
}

// sweepLinks removes links to a unit that is gone: systemd disables no unit that
// has no file.
func (k *Kind) sweepLinks(name string) error {
	all, err := k.links(name)
	for _, l := range all {
		err = errors.Join(err, k.remove(path.Join(layout.Layout{}.UnitDir(), l), false))
	}
	return err
}

// linkBefore enables the unit when it was enabled and is not.
func (k *Kind) linkBefore(ctx context.Context, v *view, unlinked bool) (bool, error) {
	was := v.before.Enabled
	if v.unit.Enabled == nil && !whole(v.unit) || was != "enabled" && was != "enabled-runtime" || was == v.state && !unlinked {
		return false, nil
	}
	made, err := k.systemd.enable(ctx, v.unit.Name, was == "enabled-runtime")
	return len(made) > 0, errors.Join(err, k.sync(made))
}

// giveFilesBack makes the files what they were.
func (k *Kind) giveFilesBack(v *view) (notes []string, changed bool, err error) {
	for _, file := range slices.Sorted(maps.Keys(v.wishes)) {
		before := v.before.Files[file]
		if v.things[file].same(before) {
			continue
		}
		if v.things[file].masks() && !v.wishes[file].mask {
			notes = append(notes, "somebody masked it, and it stays masked")
			continue
		}
		changed = true
		kept, err := k.giveBack(file, v.wishes[file], v.things[file], before, v.before.Folder)
		if err != nil {
			return nil, changed, err
		}
		if kept != "" {
			notes = append(notes, fmt.Sprintf("somebody changed %s: what it was is in %q", v.label(file), kept))
		}
	}
	// What the host moved out of its way.
	for _, file := range slices.Sorted(maps.Keys(v.before.Files)) {
		if _, ok := v.wishes[file]; ok {
			continue
		}
		now, err := k.read(file)
		if err != nil {
			return nil, changed, err
		}
		if now.Kind == "" {
			changed = true
			if err := k.put(file, v.before.Files[file]); err != nil {
				return nil, changed, err
			}
		}
	}
	if len(v.unit.DropIns) > 0 && !v.before.Folder {
		err = k.removeFolder(v.unit.Path() + ".d")
	}
	return notes, changed, err
}

// runBefore makes it run as it did when the host came, and what goes on running
// take notice of the files that were given back.
func (k *Kind) runBefore(ctx context.Context, v *view, runs, written bool) error {
	u := v.unit
	switch {
	case template(u.Name):
		return nil
	case !runs && v.before.Active && (u.Active != nil || whole(u)):
		return k.job(ctx, start, u.Name)
	case runs && written:
		if verb := change(&declaration.Unit{OnChange: u.OnChange}, v.status, true, whole(u), whole(u)); verb != "" {
			return k.job(ctx, verb, u.Name)
		}
	}
	return nil
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
