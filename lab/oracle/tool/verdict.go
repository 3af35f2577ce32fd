package tool

import (
	"context"
	"debug/buildinfo"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/child"
)

// A judge is a test that says verdicts: a testing.TB.
type judge interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
	Attr(key, value string)
}

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)+`)

// Verdict puts a case into the table that lab/testreport prints: what a program
// of this computer, or one that lab/tools.sh built, answered in this run, and what
// is ours.
func Verdict(t judge, program, name, theirs, ours string) {
	t.Helper()
	t.Attr("verdict", strings.Join([]string{program + " " + Version(t, program), name, theirs, ours}, " | "))
}

// Version is the version of a program: the one lab/tools.sh built it from, or else
// what the program of this computer says that it has.
func Version(t judge, program string) string {
	t.Helper()
	if dir, err := Dir(); err == nil {
		if info, err := buildinfo.ReadFile(filepath.Join(dir, program)); err == nil {
			return strings.TrimPrefix(info.Main.Version, "v")
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%v", err)
	}
	out, err := child.Run(t.Context(), child.Command{Path: path, Args: []string{"--version"}})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(number.Find(out.Stdout))
}
