// Package command runs a package manager: alone, unable to ask, and so that it
// lives on when the host dies.
//
// It goes through internal/child: no terminal, nothing to read, a process group
// that dies whole at the deadline, and only then: a host that is to end leaves it
// at work. Where systemd runs it gets a transient scope of its own, so that the
// end of the host's unit is not its end; and its output goes to memory that
// outlives the host, since a pipe whose reader died would kill it in the middle
// (pipe(7)).
//
// What it says is kept in its own words, the last of them, for the error. That
// it ended well is a hint: who calls looks at the database and the files.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const (
	// longest is far more than any deadline of the engine.
	longest = 24 * time.Hour
	// kept is how much of the output is kept, in bytes.
	kept = 64 << 10
	// maxSaid is how many lines of it an error has, and maxLine how long one is.
	maxSaid, maxLine = 6, 240
	systemdRun       = "/usr/bin/systemd-run"
)

// A Line is a run of a package manager.
type Line struct {
	Path      string
	Args, Env []string
}

// An Interrupted is the error of a run that did not come to its end: what it
// was at is half done.
type Interrupted struct{ how string }

func (i Interrupted) Error() string { return i.how }

// A Runner runs a package manager, as Run does.
type Runner func(context.Context, Line) (string, error)

// Run runs it to its end and returns what it printed. The error has the last it
// said; one that was killed, by its deadline for one, is an Interrupted. So is one
// that is left at work, because the host is to end (ctx was cancelled): it goes on.
func Run(ctx context.Context, l Line) (string, error) {
	c := child.Command{Path: l.Path, Args: l.Args, Env: l.Env, Timeout: longest, MaxOutput: kept, Outlives: true}
	if scoped() {
		c.Path = systemdRun
		c.Args = append([]string{"--scope", "--quiet", "--collect", "--description=packages of mesh-host", "--", l.Path}, l.Args...)
	}
	name := filepath.Base(l.Path)
	res, err := run(ctx, c)
	out := string(res.Stdout)
	switch {
	case errors.Is(err, errLeft):
		return "", Interrupted{name + " goes on without the host, which is to end"}
	case err == nil:
		return out, nil
	case ctx.Err() != nil && !res.Exited:
		return out, Interrupted{fmt.Sprintf("%s did not end in time, and was killed: %s", name, Said(out))}
	case !res.Exited && len(res.Stdout) == 0:
		return out, err // it never began
	case !res.Exited:
		return out, Interrupted{fmt.Sprintf("%s was killed: %s", name, Said(out))}
	}
	return out, fault.Failedf("%s failed: %s", name, Said(out))
}

// errLeft is the error of run when the program is left at work.
var errLeft = errors.New("it goes on")

// An end is how a program ended.
type end struct {
	child.Result
	error
}

// run is child.Run of what only a deadline kills.
func run(ctx context.Context, c child.Command) (child.Result, error) {
	alive, kill := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan end, 1)
	go func() { // until the program ends, or with it the host
		defer kill()
		res, err := child.Run(alive, c)
		ended <- end{res, err}
	}()
	e := await(ctx, ended, kill)
	return e.Result, e.error
}

// await waits for the end, which the deadline of ctx brings about.
func await(ctx context.Context, ended <-chan end, kill func()) end {
	select {
	case e := <-ended:
		return e
	case <-ctx.Done():
	}
	// Both may have come, and select takes either.
	select {
	case e := <-ended:
		return e
	default:
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return end{error: errLeft}
	}
	kill()
	return <-ended
}

// scoped reports whether systemd can give it a scope (sd_booted(3)).
func scoped() bool {
	for _, p := range []string{"/run/systemd/system", systemdRun} {
		if _, err := os.Stat(p); err != nil {
			return false
		}
	}
	return true
}

// telling are what lines of managers look like that say why.
var telling = []string{"error:", "E: ", "dpkg: error", "dpkg-deb: error", "unable to satisfy", " requires ", "required by", "breaks dependency", "in conflict", "exists in filesystem", "exists in both",
	"Depends:", "Conflicts:", "Breaks:", "depends on", "conflict with each other", "No space left", "not permitted", "returned error exit status", "broke "}

// Said is what of the output tells why, in one line: the last of the lines that
// look like it, or the last lines.
func Said(out string) string {
	all := lines(out)
	why := slices.DeleteFunc(slices.Clone(all), func(line string) bool {
		return !slices.ContainsFunc(telling, func(mark string) bool { return strings.Contains(line, mark) })
	})
	if len(why) == 0 {
		why = all
	}
	return last(why, maxSaid)
}

// Before is the line of the output that holds the text, and those before it.
func Before(out, text string) string {
	all := lines(out)
	i := slices.IndexFunc(all, func(line string) bool { return strings.Contains(line, text) })
	return last(all[:i+1], maxSaid/2)
}

func last(lines []string, n int) string {
	if len(lines) == 0 {
		return "it says nothing"
	}
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}

// lines are those of the output, of a length that people read.
func lines(out string) []string {
	var all []string
	for line := range strings.FieldsFuncSeq(out, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(strings.Map(printable, line))
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine], "") + "..."
		}
		if line != "" {
			all = append(all, line)
		}
	}
	return all
}

// printable drops what would drive a terminal.
func printable(r rune) rune {
	if r < ' ' && r != '\t' || r == 0x7f {
		return -1
	}
	return r
}
