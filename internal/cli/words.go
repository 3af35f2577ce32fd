package cli

import (
	"fmt"
	"time"
)

// Span says how long something is, roughly: "40 s", "58 min", "7 h", "12 days".
func Span(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// Ago says how long ago a moment was, roughly; "never" for the zero time.
func Ago(now, then time.Time) string {
	switch d := now.Sub(then).Round(time.Second); {
	case then.IsZero():
		return "never"
	case d < 0:
		return "in the future (is the clock right?)"
	default:
		return Span(d) + " ago"
	}
}

// Count says how many there are of a thing: "1 node", "2 nodes", "0 nodes".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
