package unit

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// see looks at the disk and asks systemd. It changes nothing.
func (k *Kind) see(ctx context.Context, u *declaration.Unit, prior *resource.Record) (*view, error) {
	v := &view{unit: u, wishes: wishes(u), things: map[string]thing{}, owned: prior != nil}
	var err error
	if v.was, v.before, err = wasDeclared(prior); err != nil {
		return nil, err
	}
	if err := k.seeFiles(v); err != nil {
		return nil, err
	}
	if !template(u.Name) {
		if v.status, err = k.systemd.look(ctx, u.Name); err != nil {
			return nil, err
		}
	}
	if err := k.refuse(ctx, u.Name, v.status); err != nil {
		return nil, err
	}
	if u.Enabled != nil || !v.owned {
		if v.state, err = k.systemd.fileState(ctx, u.Name); err != nil {
			return nil, err
		}
	}
	if err := k.seeInstance(v); err != nil {
		return nil, err
	}
	if err := k.seeLinks(ctx, v); err != nil {
		return nil, err
	}
	v.pending, err = k.pending(u.Name)
	return v, err
}

// seeInstance finds out whether an instance of a template, which has no file, is
// enabled: then there is a link of its name.
func (k *Kind) seeInstance(v *view) error {
	if v.state != "" || v.unit.Enabled == nil || !strings.Contains(v.unit.Name, "@") || template(v.unit.Name) || v.status.Load == "not-found" {
		return nil
	}
	all, err := k.links(v.unit.Name)
	v.state = "disabled"
	if len(all) > 0 {
		v.state = "enabled"
	}
	return err
}

func (k *Kind) seeFiles(v *view) (err error) {
	paths := slices.Collect(maps.Keys(v.wishes))
	if v.was != nil {
		for file := range wishes(v.was) {
			if _, ok := v.wishes[file]; !ok {
				v.over = append(v.over, file)
			}
		}
		slices.Sort(v.over)
	}
	for _, file := range append(paths, v.over...) {
		if v.things[file], err = k.read(file); err != nil {
			return err
		}
	}
	if v.mask, err = k.maskedBy(v.unit.Name); err != nil {
		return err
	}
	if whole(v.unit) {
		return k.seeStrange(v)
	}
	return nil
}

func (k *Kind) seeStrange(v *view) error {
	all, err := k.dropIns(v.unit.Name)
	if err != nil {
		return err
	}
	var owned map[string]bool
	for _, file := range all {
		if _, ok := v.wishes[file]; ok || slices.Contains(v.over, file) {
			continue
		}
		if owned == nil {
			if owned, err = k.ownedFiles(); err != nil {
				return err
			}
		}
		if owned[file] {
			continue
		}
		v.strange = append(v.strange, file)
		if v.things[file], err = k.read(file); err != nil {
			return err
		}
	}
	return nil
}

// ownedFiles are the files that another resource of the host's is.
func (k *Kind) ownedFiles() (map[string]bool, error) {
	out := map[string]bool{}
	if k.Records == nil {
		return out, nil
	}
	records, err := k.Records.Records()
	for _, r := range records {
		if file, ok := strings.CutPrefix(r.Key, string(declaration.TypeFile)+":"); ok {
			out[file] = true
		}
	}
	return out, err
}

// seeLinks compares the links with the text that is declared, once that is on
// the disk.
func (k *Kind) seeLinks(ctx context.Context, v *view) error {
	u := v.unit
	if !whole(u) || !is(u.Enabled) || len(v.fileDifferences()) > 0 {
		return nil
	}
	var texts []string
	for _, file := range slices.Sorted(maps.Keys(v.wishes)) {
		texts = append(texts, string(v.things[file].Text))
	}
	in := installOf(texts...)
	must, may, exact := in.links(u.Name)
	v.linked.known = true
	v.linked.none = len(in.lists) == 0
	dir := path.Dir(u.Path())
	for _, l := range must {
		t, err := k.read(path.Join(dir, l))
		if err != nil {
			return err
		}
		if t.Kind != "symlink" || t.masks() {
			v.linked.missing = append(v.linked.missing, l)
		}
	}
	for _, other := range in.lists["Also"] {
		if state, err := k.systemd.fileState(ctx, other); err != nil {
			return err
		} else if state == "disabled" {
			v.linked.missing = append(v.linked.missing, "of "+other)
		}
	}
	if !exact {
		return nil
	}
	all, err := k.links(u.Name)
	for _, l := range all {
		if !slices.Contains(must, l) && !slices.Contains(may, l) {
			v.linked.extra = append(v.linked.extra, l)
		}
	}
	return err
}
