package unit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Apply implements resource.Kind.
func (k *Kind) Apply(ctx context.Context, want resource.Want, prior *resource.Record, found resource.State) error {
	m := k.join()
	defer m.leave()
	if err := k.supported(ctx); err != nil {
		return err
	}
	u := want.Resource.Unit
	v, changed, err := k.write(ctx, want, prior)
	if err != nil {
		return fmt.Errorf("cannot write unit %q: %w", u.Name, err)
	}
	linked, err := k.enable(ctx, v)
	if err != nil {
		return fmt.Errorf("cannot set what enables unit %q: %w", u.Name, err)
	}
	if err := m.refresh(ctx, changed || linked || v.status.NeedReload); err != nil {
		return fmt.Errorf("cannot make systemd read unit %q: %w", u.Name, err)
	}
	return k.run(ctx, u, changed || v.due(), want.Restart, found.Failing != "")
}

// write makes the files as declared, and looks again when it changed any.
func (k *Kind) write(ctx context.Context, want resource.Want, prior *resource.Record) (v *view, changed bool, err error) {
	u := want.Resource.Unit
	if v, err = k.see(ctx, u, prior); err != nil {
		return nil, false, err
	}
	if err := v.held(); err != nil {
		return nil, false, err
	}
	if v.foreign() && !want.Resource.TakeOver {
		return nil, false, fault.Failedf("it exists and is not ours").Hint(`remove it, or declare "take_over": true`)
	}
	if len(v.fileDifferences()) == 0 {
		return v, false, nil
	}
	if err := k.ready(v); err != nil {
		return nil, false, err
	}
	if v.status.runs() && u.OnChange != declaration.OnChangeNone {
		if err := k.setPending(u.Name); err != nil {
			return nil, false, err
		}
	}
	if err := errors.Join(k.unmask(v), k.writeWishes(v), k.writeOver(v)); err != nil {
		return nil, false, err
	}
	for _, file := range v.strange {
		if _, err := k.aside(file); err != nil {
			return nil, false, err
		}
	}
	v, err = k.see(ctx, u, prior)
	return v, true, err
}

// ready makes sure, before anything is touched, that all text is there and that
// nothing is in the way.
func (k *Kind) ready(v *view) error {
	for file, w := range v.wishes {
		if v.things[file].Kind == "other" {
			return fault.Refusedf("%q is no file of a unit, and none takes its place", file).Hint("move it away by hand")
		}
		if w.mask {
			continue
		}
		if _, err := k.textOf(w); err != nil {
			return err
		}
	}
	return nil
}

// unmask removes every mask, where the declaration says that there is none. A
// file in the place of one is written by its wish.
func (k *Kind) unmask(v *view) error {
	if !isnt(v.unit.Masked) {
		return nil
	}
	for range byHand {
		mask, err := k.maskedBy(v.unit.Name)
		if err != nil || mask == "" || whole(v.unit) && mask == v.unit.Path() {
			return err
		}
		if err := k.remove(mask, false); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kind) writeWishes(v *view) error {
	for _, file := range slices.Sorted(maps.Keys(v.wishes)) {
		w := v.wishes[file]
		if w.difference(v.things[file]) == "" {
			continue
		}
		if v.somebodys(file) {
			if _, err := k.aside(file); err != nil {
				return err
			}
		}
		if err := k.fulfil(file, w); err != nil {
			return err
		}
	}
	return nil
}

// somebodys: a file came there that was neither declared before, nor there when
// the host came, when it was kept.
func (v *view) somebodys(file string) bool {
	if !v.owned || v.things[file].Kind == "" || v.things[file].masks() || v.things[file].same(v.before.Files[file]) {
		return false
	}
	_, declared := wishes(v.was)[file]
	return !declared
}

// writeOver gives back, or takes away, what is no longer declared.
func (k *Kind) writeOver(v *view) error {
	for _, file := range v.over {
		if _, err := k.giveBack(file, wishes(v.was)[file], v.things[file], v.target(file), v.before.Folder); err != nil {
			return err
		}
	}
	return nil
}

// giveBack makes a file that the host wrote what it was before. What somebody
// made of it is put aside; the path of that is returned.
func (k *Kind) giveBack(file string, ours wish, now, before thing, folder bool) (kept string, err error) {
	if now.same(before) {
		return "", nil
	}
	if now.Kind != "" && ours.difference(now) != "" {
		if kept, err = k.aside(file); err != nil {
			return "", err
		}
	}
	if before.Kind != "" {
		return kept, k.put(file, before)
	}
	return kept, k.remove(file, !folder && path.Ext(path.Dir(file)) == ".d")
}

// enable makes the links as declared, and reports whether it changed any.
func (k *Kind) enable(ctx context.Context, v *view) (changed bool, err error) {
	if len(v.enabledDifference()) == 0 {
		return false, nil
	}
	name := v.unit.Name
	switch {
	case !*v.unit.Enabled:
		return true, k.unlink(ctx, name, v.state)
	case v.linked.known && v.linked.none:
		return false, errNoInstall
	case v.linked.known && (len(v.linked.extra) > 0 || v.state == "enabled-runtime"):
		// Old ones are found by the name: the text that made them is gone.
		if err := k.unlink(ctx, name, v.state); err != nil {
			return false, err
		}
	}
	made, err := k.systemd.enable(ctx, name, false)
	if err == nil && len(made) == 0 && !v.linked.known {
		err = errNoInstall
	}
	return true, errors.Join(err, k.sync(made))
}

var errNoInstall = errors.New("it has no [Install] section that says how")

// unlink removes the links of a unit whose file is in that state.
func (k *Kind) unlink(ctx context.Context, name, state string) error {
	gone, err := k.systemd.disable(ctx, name, state == "enabled-runtime")
	return errors.Join(err, k.sync(gone))
}

// sync makes links durable that systemd made or removed, and the folders that
// they are in.
func (k *Kind) sync(links []string) error {
	dirs := map[string]bool{}
	for _, l := range links {
		dirs[path.Dir(l)], dirs[path.Dir(path.Dir(l))] = true, true
	}
	for dir := range dirs {
		if err := durable.SyncDir(k.Layout.Path(dir)); err != nil && !isNotExist(err) {
			return err
		}
	}
	return nil
}

// Recover sweeps what a crash in the middle of Apply or Remove left beside the
// files.
func (k *Kind) Recover(_ context.Context, r declaration.Resource) error {
	for file := range wishes(r.Unit) {
		d, err := k.folder(file, false)
		if isNotExist(err) {
			continue
		}
		if err == nil {
			err = d.Sweep(path.Base(file))
			d.Close()
		}
		if err != nil {
			return fmt.Errorf("cannot sweep beside %q: %w", file, err)
		}
	}
	return nil
}
