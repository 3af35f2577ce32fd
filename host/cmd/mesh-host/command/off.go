package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// offLine counts how things are that are not as declared.
func offLine(off []service.Off) string {
	if len(off) == 0 {
		return "all as declared"
	}
	var order, said []string
	count := map[string]int{}
	for _, o := range off {
		if count[o.There]++; count[o.There] == 1 {
			order = append(order, o.There)
		}
	}
	for _, there := range order {
		said = append(said, fmt.Sprintf("%d %s", count[there], there))
	}
	return strings.Join(said, ", ")
}

// mostShown bounds how much of what is wrong a person is shown at once.
const mostShown = 20

func (p *program) printOff(now time.Time, off []service.Off) {
	if len(off) == 0 {
		return
	}
	shown := off
	if !p.verbose {
		shown = off[:min(len(off), mostShown)]
	}
	wide := 0
	for _, o := range shown {
		wide = max(wide, len(o.There))
	}
	fmt.Fprintln(p.std.Out)
	for _, o := range shown {
		fmt.Fprintf(p.std.Out, "%-*s  %s%s\n", wide, o.There, cli.OneLine(o.Key), lasting(now, o))
		if len(o.Differences) > 0 {
			fmt.Fprintf(p.std.Out, "%*s  %s\n", wide, "", cli.OneLine(strings.Join(o.Differences, ", ")))
		}
	}
	if more := len(off) - len(shown); more > 0 {
		fmt.Fprintf(p.std.Out, "\n%d more; --verbose shows all\n", more)
	}
}

// lasting is since when it is so, as far as that is known.
func lasting(now time.Time, o service.Off) string {
	said := ""
	if d := now.Sub(o.Since); !o.Since.IsZero() && d >= time.Second { // the clock may have been set since
		said = ", for " + cli.Span(d)
	}
	switch {
	case o.Times == 1:
		said += ", in the last pass"
	case o.Times > 1:
		said += fmt.Sprintf(", in the last %d passes", o.Times)
	}
	return said
}
