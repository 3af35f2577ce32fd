package unit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// Texts returns what the unit's file and drop-ins say and what they shall say, as
// systemctl cat does, each of at most max bytes. Nothing is returned where one of
// them is not for everybody's eyes: somebody had a reason.
func (k *Kind) Texts(_ context.Context, want resource.Want, max int64) (have, wanted []byte, err error) {
	all := wishes(want.Resource.Unit)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		w := all[file]
		t, err := k.read(file)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot look at %q: %w", file, err)
		}
		if t.Kind == "file" {
			if t.Mode&0o004 == 0 {
				return nil, nil, nil
			}
			have = fmt.Appendf(have, "# %s\n%s\n", file, t.Text)
		}
		if w.mask {
			continue
		}
		text, err := k.textOf(w)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read %q: %w", file, err)
		}
		wanted = fmt.Appendf(wanted, "# %s\n%s\n", file, text)
	}
	return have[:min(int64(len(have)), max)], wanted[:min(int64(len(wanted)), max)], nil
}
