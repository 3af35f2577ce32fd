package progress

import (
	"fmt"
	"strings"
)

// The widths of what stands on the line.
const (
	gap         = 2
	amountWidth = len("1023 MiB")
	rateWidth   = len("1023 MiB/s")
	leftWidth   = len("119 s left")
	minTitle    = 12
	wideTitle   = 32 // from here on there is room for the verb
	maxTitle    = 60
	minBar      = 12
	maxBar      = 42
)

// draw puts the work on a line of at most columns-3 cells: a terminal is about to
// wrap when the last one is written, and echoes ^C in two. Of what does not fit the
// least important is left out; the title takes what is left.
func (w work) draw(columns int) string {
	if columns <= 0 {
		columns = 80 // a serial line says 0
	}
	room := columns - 3
	percent, known := w.percent()
	rest := room
	take := func(width int) bool {
		if rest-gap-width < minTitle {
			return false
		}
		rest -= gap + width
		return true
	}
	hasPercent := known && take(len("100%"))
	amount, wide := Bytes(w.at.Done), amountWidth
	if known {
		of := "/" + Bytes(w.at.Total)
		amount, wide = amount+of, wide+len(of)
	}
	hasAmount := take(wide)
	hasRate := hasAmount && take(rateWidth)
	hasLeft := known && hasRate && take(leftWidth)
	bar := 0
	if hasLeft && take(minBar) {
		// Half of what is to spare makes the bar longer.
		bar = min(minBar+(rest-minTitle)/2, maxBar)
		rest -= bar - minBar
	}
	title := w.title()
	if rest >= wideTitle && w.doing != "" {
		title = w.doing + " " + title
	}
	parts := []string{fit(title, min(rest, maxTitle))}
	if hasAmount {
		parts = append(parts, fmt.Sprintf("%*s", wide, amount))
	}
	if hasPercent {
		parts = append(parts, fmt.Sprintf("%3d%%", percent))
	}
	if bar > 0 {
		full := (bar - 2) * percent / 100
		parts = append(parts, "["+strings.Repeat("#", full)+strings.Repeat("-", bar-2-full)+"]")
	}
	if hasRate {
		parts = append(parts, fmt.Sprintf("%*s", rateWidth, w.speed()))
	}
	if hasLeft {
		parts = append(parts, w.timeLeft())
	}
	line := strings.Join(parts, strings.Repeat(" ", gap))
	if known && !hasPercent {
		line = fmt.Sprintf("%d%%", percent)
	}
	if cells(strings.TrimSpace(line)) > room {
		return "" // part of a number is another number
	}
	return strings.TrimRight(line, " ")
}

// fit makes s exactly so many cells wide.
func fit(s string, width int) string {
	if n := cells(s); n <= width {
		return s + strings.Repeat(" ", width-n)
	}
	const cut = "…"
	used, end := cells(cut), 0
	if used > width {
		return strings.Repeat(" ", max(width, 0))
	}
	for i, r := range s {
		n := cells(string(r))
		if used+n > width {
			end = i
			break
		}
		used += n
	}
	return s[:end] + cut + strings.Repeat(" ", width-used)
}

// cells is how many cells s takes at most. Which characters are wide depends on
// the terminal and its version of Unicode; nothing before the Hangul Jamo is.
// Taking all others for wide cuts some titles early, and wraps none.
func cells(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r == '…' || r == '\uFFFD', r < 0x1100:
			n++
		default:
			n += 2
		}
	}
	return n
}
