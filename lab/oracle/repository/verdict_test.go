package repository

import (
	"path/filepath"
	"strings"
)

// refusal is the first reason in what a program printed, without the folder that
// the test is in.
func refusal(out, dir string) string {
	for line := range strings.Lines(out) {
		why, is := strings.CutPrefix(line, "error: ")
		if !is {
			why, is = strings.CutPrefix(line, "mesh-release: ")
		}
		if is && !strings.Contains(why, "keyring is not writable") {
			if _, reason, found := strings.Cut(why, `": `); found && strings.HasPrefix(why, "cannot publish repository") {
				why = reason
			}
			return "refuses: " + strings.ReplaceAll(strings.TrimSpace(why), dir+string(filepath.Separator), "")
		}
	}
	return "refuses: " + strings.TrimSpace(out)
}

// listed is what mesh-release says is in the repository in dir.
func (p *publisher) listed(dir string) string {
	p.t.Helper()
	var said []string
	for i, line := range strings.Split(strings.TrimSpace(p.mesh("repo", "list", "--trust", p.keys, dir)), "\n") {
		if f := strings.Fields(line); i > 0 && f[len(f)-1] == "listed" { // not the head, nor what is kept
			said = append(said, f[0]+" "+f[1])
		}
	}
	return "lists: " + strings.Join(said, ", ")
}
