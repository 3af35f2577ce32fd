package installer

import (
	"bytes"
	"slices"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// TestADryUninstallSaysWhatTheNextOneDoes, and touches nothing.
func TestADryUninstallSaysWhatTheNextOneDoes(t *testing.T) {
	from := newPublisher(t).unpacked(t, "1.0.0", standIn(t, "1.0.0"), nil)
	for what, c := range map[string]struct {
		prepare func(layout.Layout)
		o       UninstallOptions
	}{
		"plain":                 {nil, UninstallOptions{Owner: owns(0)}},
		"purge":                 {nil, UninstallOptions{Owner: owns(0), Purge: true}},
		"kept resources":        {nil, UninstallOptions{Owner: owns(2), KeepResources: true}},
		"a person's change":     {func(l layout.Layout) { write(t, l.HostConfig(), "mine") }, UninstallOptions{}},
		"what one left earlier": {func(l layout.Layout) { mustUninstall(t, UninstallOptions{Layout: l}) }, UninstallOptions{Purge: true}},
	} {
		t.Run(what, func(t *testing.T) {
			l := image(t)
			mustInstall(t, l, from)
			write(t, l.HostStore(), "store")
			if c.prepare != nil {
				c.prepare(l)
			}
			before := tree(t, l.Root, true)
			var said bytes.Buffer
			c.o.Layout, c.o.DryRun, c.o.Out = l, true, &said
			plan := mustUninstall(t, c.o)
			if after := tree(t, l.Root, true); after != before || said.Len() != 0 {
				t.Errorf("touched:\n%s\nsaid %q", diff(before, after), said.String())
			}
			c.o.DryRun = false
			done := mustUninstall(t, c.o)
			for _, s := range []*UninstallSummary{&plan, &done} {
				slices.Sort(s.Removed)
				slices.Sort(s.Kept)
			}
			if !slices.Equal(plan.Removed, done.Removed) || !slices.Equal(plan.Kept, done.Kept) || len(done.Removed) == 0 {
				t.Errorf("said\n%+v\ndid\n%+v", plan, done)
			}
		})
	}
	l := image(t)
	mustInstall(t, l, from)
	if _, err := Uninstall(t.Context(), UninstallOptions{Layout: l, Owner: owns(1), DryRun: true}); fault.KindOf(err) != fault.Refused {
		t.Errorf("what would be refused: %v", err)
	}
}

func mustUninstall(t *testing.T, o UninstallOptions) UninstallSummary {
	t.Helper()
	s, err := Uninstall(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
