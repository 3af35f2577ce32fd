// Package testreport turns the stream of `go test -json` into what a person
// reads: the closing line of each package as go test prints it, all of what a
// failed test printed, and at the end what other programs say beside ours, how
// many tests ran and which were skipped for what reason. A skip that nobody sees
// is a test that nobody has.
//
// A test that asks another program says so by t.Attr("verdict", "TOOL | CASE |
// THEIR ANSWER | OUR ANSWER"), with what both answered in that run.
package testreport

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of the stream, see `go doc test2json`.
type event struct {
	Action, Package, Test, Output, Key, Value string
}

type test struct{ pkg, name string }

// Write reads the stream to its end and writes the report. It returns false
// when something failed, or nothing was tested; and, when expected is not nil,
// when a test was skipped that is not in it ("PACKAGE TEST"): where everything
// a test needs is there, a tool that went missing must not go unseen.
func Write(w io.Writer, stream io.Reader, expected []string) (ok bool, err error) {
	printed := map[test]*strings.Builder{}
	var skipped []string
	var asked verdicts
	missing := 0
	var ran, failed, packages int
	broken := false

	in := bufio.NewReader(stream)
	for {
		line, rerr := in.ReadString('\n')
		var e event
		if line != "" && json.Unmarshal([]byte(line), &e) != nil {
			fmt.Fprint(w, line) // of the go command itself
		}
		t := test{e.Package, e.Test}
		switch e.Action {
		case "build-output":
			fmt.Fprint(w, e.Output)
		case "build-fail":
			broken = true
		case "attr":
			if e.Key == "verdict" {
				asked.add(e.Value)
			}
		case "output":
			if e.Test != "" {
				if printed[t] == nil {
					printed[t] = new(strings.Builder)
				}
				printed[t].WriteString(e.Output)
			} else if e.Output != "PASS\n" {
				fmt.Fprint(w, e.Output)
			}
		case "pass", "fail", "skip":
			if e.Test == "" {
				packages++
				broken = broken || e.Action == "fail"
				break
			}
			text := ""
			if printed[t] != nil {
				text = printed[t].String()
			}
			delete(printed, t)
			switch e.Action {
			case "pass":
				ran++
			case "fail":
				failed++
				fmt.Fprint(w, text)
			case "skip":
				how := "skipped"
				if expected != nil && !slices.Contains(expected, e.Package+" "+e.Test) {
					how = "skipped, and may not be here"
					missing++
				}
				skipped = append(skipped, fmt.Sprintf("%s: %s %s: %s", how, e.Package, e.Test, reason(text)))
			}
		}
		if rerr == io.EOF {
			break
		}
		if rerr != nil {
			return false, rerr
		}
	}
	// What a package that crashed printed last belongs to no ended test.
	for t, text := range printed {
		fmt.Fprintf(w, "%s %s did not end:\n%s", t.pkg, t.name, text)
	}
	asked.write(w)
	fmt.Fprintf(w, "\n%d tests passed, %d failed, %d were skipped, in %d packages\n", ran, failed, len(skipped), packages)
	for _, s := range skipped {
		fmt.Fprintf(w, "  %s\n", s)
	}
	return !broken && failed == 0 && missing == 0 && len(printed) == 0 && packages > 0, nil
}

// reason finds "reason" in what a skipped test printed, "file.go:12: reason".
func reason(text string) string {
	why := "it says no reason"
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "===") || strings.HasPrefix(line, "---") {
			continue
		}
		if _, after, found := strings.Cut(line, ".go:"); found {
			if _, said, found := strings.Cut(after, ": "); found {
				line = said
			}
		}
		why = line
	}
	return why
}
