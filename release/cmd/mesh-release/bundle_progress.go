package main

import (
	"fmt"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/progress"
)

// telling shows how far the work on a bundle is, until shown is called: what is
// printed on a terminal before is drawn over.
func (p *program) telling(name string) (told bundle.Told, shown func()) {
	r := p.progress()
	now := ""
	return func(doing string, at bundle.Progress) {
		if doing != now {
			r.Begin(doing, filepath.Base(name))
			now = doing
		}
		r.At(progress.At{Title: at.Title, Done: at.Done, Total: at.Total, Here: at.Here})
	}, r.Close
}

// notes says notes that were taken while progress was shown.
func (p *program) notes(all []string) {
	for _, text := range all {
		p.note(text)
	}
}

// note says on standard error what a person should know.
func (p *program) note(text string) {
	if !p.quiet && !p.json {
		fmt.Fprintf(p.std.Err, "note: %s\n", cli.OneLine(text))
	}
}
