package apply

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

const syncRoot = "NOX_APPLY_TEST_ROOT"

// crowded is as many files as share one sync, in two folders, in a declaration.
func crowded(text string) (paths, resources []string) {
	for i := range 40 {
		p := fmt.Sprintf("/srv/%d/f%02d", i%2, i)
		paths, resources = append(paths, p), append(resources, aFile(fmt.Sprintf("f%02d", i), p, text))
	}
	return paths, resources
}

// A disk that fails while many files share what makes them durable.
func TestF10OfManyThatShareASyncThoseThatFailedAreSaid(t *testing.T) {
	paths, resources := crowded("new")
	if root := os.Getenv(syncRoot); root != "" {
		fmt.Println(labAt(t, root).applied(resources...))
		return
	}
	for name, c := range map[string]struct {
		files, folders bool
		when, says     string
		some           bool
	}{
		"of each file":    {files: true, when: "1+1", says: "sync"},
		"of some files":   {files: true, when: "1+2", says: "sync", some: true},
		"of the folders":  {folders: true, when: "1+1", says: "fsync"},
		"of some folders": {folders: true, when: "1+2", says: "fsync", some: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			_, old := crowded("old")
			if strings.Contains(l.applied(old...), "failed") {
				t.Fatal("not even the old ones")
			}
			if err := l.engine.Store.Close(); err != nil {
				t.Fatal(err)
			}
			var only []string
			for _, p := range paths {
				p = filepath.Join(l.root, p)
				if c.files {
					only = append(only, "-P", filepath.Join(filepath.Dir(p), durable.TempName(filepath.Base(p))))
				}
			}
			if c.folders {
				only = []string{"-P", filepath.Join(l.root, "srv/0"), "-P", filepath.Join(l.root, "srv/1")}
			}
			said, failed := underFailingSyncs(t, l.root, c.when, only)

			l.restart()
			records, err := l.engine.Store.Records()
			if err != nil {
				t.Fatal(err)
			}
			spec := map[string]string{}
			for _, r := range records {
				spec[r.Key] = string(r.Spec)
			}
			bad := 0
			for _, p := range paths {
				really := filepath.Join(l.root, p)
				lost := failed[filepath.Join(filepath.Dir(really), durable.TempName(filepath.Base(p)))]
				fails := strings.Contains(said, fmt.Sprintf("failed file:%s (cannot write %q: %s: input/output error)", p, p, c.says))
				if fails {
					bad++
				}
				recorded := strings.Contains(spec["file:"+p], digest.FromString("new").String())
				if c.files && fails != lost || fails == recorded || !fails && !strings.Contains(said, "applied file:"+p) {
					t.Errorf("%s: its sync failed %v, said to have failed %v, recorded as new %v", p, lost, fails, recorded)
				}
				// Before its rename a file is the old one; after it, the new one is whole.
				if got := l.read(p); c.files && got != map[bool]string{true: "old", false: "new"}[lost] || got != "old" && got != "new" {
					t.Errorf("%s holds %q, its sync failed: %v", p, got, lost)
				}
			}
			if bad == 0 || c.some && bad == len(paths) || c.when == "1+1" && (bad != len(paths) || strings.Contains(said, "applied")) {
				t.Errorf("of %d files %d failed\n%s", len(paths), bad, said)
			}
			for _, dir := range []string{"srv/0", "srv/1"} {
				if left, _ := filepath.Glob(filepath.Join(l.root, dir, ".nox-*")); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			}
			// The disk is whole again.
			if got := l.pass(); strings.Contains(got, "failed") || strings.Count(got, "file:/srv/") != len(paths) {
				t.Error(got)
			}
			for _, p := range paths {
				if got := l.read(p); got != "new" {
					t.Errorf("then %s holds %q", p, got)
				}
			}
		})
	}
}

var syncCall = regexp.MustCompile(`\b(?:fsync|syncfs)\(\d+<([^>]*)>\)\s+= (-1 EIO|0)`)

// underFailingSyncs runs the test again with some of the syncs of what is named
// failing. It returns what that said, and whose last sync failed.
func underFailingSyncs(t *testing.T, root, when string, only []string) (said string, failed map[string]bool) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil || exec.Command(strace, "-f", "-o", "/dev/null", "-e", "trace=none", "true").Run() != nil {
		t.Skip("strace is not here, or does not work")
	}
	log := filepath.Join(t.TempDir(), "log")
	args := append([]string{"-f", "-qq", "-y", "-o", log, "-e", "signal=none", "-e", "trace=fsync,syncfs",
		"-e", "inject=syncfs:error=EIO", "-e", "inject=fsync:error=EIO:when=" + when}, only...)
	cmd := exec.Command(strace, append(args, os.Args[0], "-test.run=^TestF10OfManyThatShareASyncThoseThatFailedAreSaid$")...)
	cmd.Env = append(os.Environ(), syncRoot+"="+root)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	failed = map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if m := syncCall.FindStringSubmatch(lines.Text()); m != nil && strings.Contains(lines.Text(), "fsync(") {
			failed[m[1]] = m[2] != "0"
		}
	}
	return string(out), failed
}
