package apply

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A kind of call that a pass which finds all as declared can do without.
var kinds = []struct {
	name string
	call *regexp.Regexp
}{
	{"sync", regexp.MustCompile(`^(fsync|fdatasync|syncfs|sync|sync_file_range|msync)\(`)},
	{"name", regexp.MustCompile(`^(rename|link|symlink|unlink|mkdir|rmdir|mknod)\w*\(`)},
	{"write", regexp.MustCompile(`^(p?writev?2?|pwrite64|f?truncate|fallocate|sendfile|copy_file_range)\((\d+</|")`)},
	{"attribute", regexp.MustCompile(`^(f?l?ch(mod|own)\w*|utime\w*|f?l?setxattr)\(`)},
	// One that makes a file; CLONE_THREAD is a thread, and no child.
	{"create", regexp.MustCompile(`^(open|openat|openat2|creat)\(.*O_CREAT`)},
	{"child", regexp.MustCompile(`^(fork|vfork|clone3?)\(`)},
}

// BenchmarkCallsOfASecondPass counts the system calls of one command that finds
// a thousand files as declared. It fails when ours makes anything durable,
// changes a name or starts a program.
func BenchmarkCallsOfASecondPass(b *testing.B) {
	if !here("strace") {
		b.Skip("strace is not here")
	}
	t, dir := tree{1000, 4096}, b.TempDir()
	var rows []string
	for i, w := range works(b, dir, t) {
		into := fresh(b, dir, t)
		run(b, dir, w.env, w.first...)
		before := t.seen(b, into)
		counts, all := calls(b, dir, w)
		row := fmt.Sprintf("%-24s %8d", w.name, all)
		for _, k := range kinds {
			row += fmt.Sprintf(" %9d", counts[k.name])
		}
		rows = append(rows, row+"   "+w.version)
		if ours := i == 0; ours && counts["sync"]+counts["name"]+counts["write"]+counts["attribute"]+counts["child"] > 0 {
			b.Errorf("a second pass of ours changes something: %v", counts)
		}
		if fmt.Sprint(before) != fmt.Sprint(t.seen(b, into)) {
			b.Errorf("%s: the second pass wrote files that were as declared", w.name)
		}
	}
	fmt.Printf("\nsystem calls of a second pass over %d files\n%-24s %8s", t.files, "", "all")
	for _, k := range kinds {
		fmt.Printf(" %9s", k.name)
	}
	fmt.Printf("   version\n%s\n", strings.Join(rows, "\n"))
}

// calls traces the second pass of a work, children included. What goes to the
// terminal, a pipe or a socket is no write.
func calls(b *testing.B, dir string, w work) (map[string]int, int) {
	b.Helper()
	trace := filepath.Join(dir, "trace")
	run(b, dir, w.env, append([]string{"strace", "-f", "-qq", "-y", "-s", "0", "-e", "signal=none", "-o", trace}, w.again...)...)
	text, err := os.ReadFile(trace)
	must(b, err)
	counts, all := map[string]int{}, 0
	for line := range strings.Lines(string(text)) {
		_, call, _ := strings.Cut(line, " ") // the number of who calls
		call = strings.TrimSpace(call)
		if strings.HasPrefix(call, "<...") || strings.HasPrefix(call, "+++") {
			continue
		}
		all++
		for _, k := range kinds {
			if k.call.MatchString(call) && !strings.Contains(call, "CLONE_THREAD") && !strings.Contains(call, "</dev/") {
				counts[k.name]++
			}
		}
	}
	return counts, all
}
