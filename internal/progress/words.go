package progress

import (
	"fmt"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// Bytes says how many bytes there are, in at most eight characters: "987 B",
// "1.5 KiB", "412 MiB".
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", max(n, 0))
	}
	f, unit := float64(n), 0
	// 1023.5 and above would be printed as 1024.
	for f >= 1023.5 && unit < len(units) {
		f /= 1024
		unit++
	}
	if f < 9.95 {
		return fmt.Sprintf("%.1f %s", f, units[unit-1])
	}
	return fmt.Sprintf("%.0f %s", f, units[unit-1])
}

var units = []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// percent is 100 only for what is done whole; ok is false when the total is not
// known.
func (w work) percent() (p int, ok bool) {
	switch {
	case w.at.Total <= 0:
		return 0, false
	case w.at.Done >= w.at.Total:
		return 100, true
	}
	return min(int(float64(max(w.at.Done, 0))/float64(w.at.Total)*100), 99), true
}

func (w work) speed() string {
	if w.rate <= 0 {
		return ""
	}
	return Bytes(int64(w.rate)) + "/s"
}

// left is how long it takes if all goes on as it does.
func (w work) left() (d time.Duration, ok bool) {
	if w.at.Total <= 0 || w.rate <= 0 || w.at.Done >= w.at.Total {
		return 0, false
	}
	seconds := float64(w.at.Total-w.at.Done) / w.rate
	if seconds > (10000 * time.Hour).Seconds() {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

func (w work) timeLeft() string {
	d, ok := w.left()
	if !ok {
		return ""
	}
	return cli.Span(max(d, time.Second)) + " left"
}

// title is what is worked on.
func (w work) title() string {
	switch {
	case w.at.Title == "":
		return w.what
	case w.here:
		return w.at.Title + " (already here)"
	}
	return w.at.Title
}
