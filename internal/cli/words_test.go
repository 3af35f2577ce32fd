package cli

import (
	"testing"
	"time"
)

func TestAgoIsWhatAPersonWouldSay(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for then, want := range map[time.Time]string{
		{}:                               "never",
		now:                              "0 s ago",
		now.Add(-119 * time.Second):      "119 s ago",
		now.Add(-2 * time.Minute):        "2 min ago",
		now.Add(-119 * time.Minute):      "119 min ago",
		now.Add(-47 * time.Hour):         "47 h ago",
		now.Add(-49 * time.Hour):         "2 days ago",
		now.Add(400 * time.Millisecond):  "0 s ago",
		now.Add(1600 * time.Millisecond): "in the future (is the clock right?)",
	} {
		if got := Ago(now, then); got != want {
			t.Errorf("%s: %q, want %q", then, got, want)
		}
	}
}

func TestOneThingIsSingular(t *testing.T) {
	for n, want := range map[int]string{0: "0 nodes get", 1: "1 node gets", 2: "2 nodes get"} {
		if got := Count(n, "node gets", "nodes get"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
