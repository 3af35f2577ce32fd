// Package cli is the manners of the three programs: how they start, how they
// print, and how they end.
//
// The rules, the same everywhere:
//
//   - data goes to standard output, everything else to standard error;
//   - a fault is one line, "PROGRAM: cannot VERB OBJECT: cause; remedy", lower
//     case, names quoted;
//   - the exit code is the kind of the fault (internal/fault);
//   - a call that is wrong is told so in these words, not in cobra's (Execute);
//   - with --json a fault is one JSON object on standard error;
//   - told to end, by Ctrl-C, SIGTERM or a terminal that is gone, a program clears
//     away what it was making; the second Ctrl-C kills it.
package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Stdio is what a command reads and writes.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs a program: it cancels the context when the program is told to end
// (untilTold), prints the fault if there is one, and returns the exit code.
func Main(name string, run func(ctx context.Context, args []string, std Stdio) error) int {
	ctx, stop := untilTold(context.Background())
	defer stop()
	out := &answer{w: os.Stdout}
	std := Stdio{In: os.Stdin, Out: out, Err: os.Stderr}
	err := out.fault(run(ctx, os.Args[1:], std))
	if err != nil && ctx.Err() != nil {
		err = interrupted{err}
	}
	if err != nil {
		PrintFault(std.Err, name, err, wantsJSON(os.Args[1:]))
	}
	return int(fault.KindOf(err))
}

func wantsJSON(args []string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if a == "--json" || a == "--json=true" {
			return true
		}
	}
	return false
}

// PrintFault prints err as the last line of a program. A Todo fault prints
// nothing: the plan it ends has been printed already.
func PrintFault(w io.Writer, name string, err error, asJSON bool) {
	kind := fault.KindOf(err)
	if kind == fault.Todo {
		return
	}
	remedy := cmp.Or(fault.RemedyOf(err), remedyOfSystem(err))
	if asJSON {
		_ = JSON(w, fault.Error{Kind: kind, Sentence: err.Error(), Remedy: remedy})
		return
	}
	line := name + ": " + OneLine(err.Error())
	if remedy != "" {
		line += "; " + OneLine(remedy)
	}
	fmt.Fprintln(w, line)
}

// maxLine bounds what one line says, in characters.
const maxLine = 4000

// OneLine folds line breaks and takes out what cannot be printed, so that
// foreign text can neither fake a second fault nor drive a terminal.
func OneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " | ")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r): // control characters, C1 and direction marks among them
			return '\uFFFD'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > maxLine {
		s = string(r[:maxLine]) + " …"
	}
	return s
}

// Lines takes out of a text what cannot be printed, but for the ends of its
// lines and tabs: it can say what it likes, and cannot drive a terminal.
func Lines(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Table prints rows under a header, aligned, with no blanks at the end of a
// line; a last column in which nothing is said is left out. A row is one line,
// whatever its cells say (OneLine).
func Table(w io.Writer, header []string, rows [][]string) error {
	last := len(header) - 1
	if !slices.ContainsFunc(rows, func(r []string) bool { return len(r) > last && r[last] != "" }) {
		header = header[:last]
	}
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(header, "\t"))
	for _, r := range rows {
		var cells []string
		for _, cell := range r[:min(len(r), len(header))] {
			cells = append(cells, OneLine(cell))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
