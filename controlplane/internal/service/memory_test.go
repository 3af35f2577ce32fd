package service

import (
	"log/slog"
	"runtime/debug"
	"testing"
)

func TestWhoSetsTheCollectorHasDecided(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for set, want := range map[string]int{"": collectAt, "100": 100} {
		t.Setenv("GOGC", set)
		t.Setenv("GOMEMLIMIT", "off")
		debug.SetGCPercent(100)
		frugal(slog.New(slog.DiscardHandler))
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("GOGC=%q: %d, want %d", set, got, want)
		}
	}
}
