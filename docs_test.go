package house

import (
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testsSaid finds the tests that a page names: `TestX`, or one part of it, `TestX/part`.
var testsSaid = regexp.MustCompile("`(Test[A-Za-z0-9]+)(?:/([^`]+))?`")

// A told is a test of the source: where it is, and the strings in it.
type told struct {
	folder  string
	strings []string
}

// testsThere are the tests of the whole source by name, whatever they are built with.
func testsThere(t *testing.T) map[string][]told {
	t.Helper()
	out := map[string][]told{}
	for _, f := range sources(t) {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !f.isTest() || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") {
				continue
			}
			is := told{folder: f.pkg}
			ast.Inspect(fn, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil {
						is.strings = append(is.strings, s)
					}
				}
				return true
			})
			out[fn.Name.Name] = append(out[fn.Name.Name], is)
		}
	}
	return out
}

// has says whether a test has a part that begins so, or a script that is called so.
func (t told) has(part string) bool {
	_, err := os.Stat(filepath.Join(t.folder, "testdata/script", part+".txtar"))
	return err == nil || slices.ContainsFunc(t.strings, func(s string) bool { return strings.HasPrefix(s, part) })
}

// TestPagesNameTestsThatExist: a page that says what holds it must not outlive that.
func TestPagesNameTestsThatExist(t *testing.T) {
	there := testsThere(t)
	pages, _ := filepath.Glob("docs/*.md")
	decisions, _ := filepath.Glob("docs/decisions/*.md")
	for _, page := range append(append(pages, decisions...), "README.md") {
		for _, m := range testsSaid.FindAllStringSubmatch(words(t, page), -1) {
			name, part := m[1], m[2]
			if len(there[name]) == 0 {
				t.Errorf("%s: there is no %s", page, name)
			} else if part != "" && !slices.ContainsFunc(there[name], func(is told) bool { return is.has(part) }) {
				t.Errorf("%s: %s has no part %q", page, name, part)
			}
		}
	}
}

// TestTheSecurityPageSaysWhereItsTestsAre: each test that docs/security.md speaks of is
// in its list, under the folder it is in, and none besides.
func TestTheSecurityPageSaysWhereItsTestsAre(t *testing.T) {
	there := testsThere(t)
	text, list, ok := strings.Cut(words(t, "docs/security.md"), "\n## Where the tests are\n")
	if !ok {
		t.Fatal("the list is not there")
	}
	said, listed := map[string]bool{}, map[string]bool{}
	for _, m := range testsSaid.FindAllStringSubmatch(text, -1) {
		said[m[1]] = true
	}
	for line := range strings.Lines(list) {
		folder, names, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` | ")
		if !ok {
			continue
		}
		for _, m := range testsSaid.FindAllStringSubmatch(names, -1) {
			listed[m[1]] = true
			if !said[m[1]] {
				t.Errorf("nothing is said of %s", m[1])
			}
			if !slices.ContainsFunc(there[m[1]], func(is told) bool { return is.folder == folder }) {
				t.Errorf("there is no %s in %s", m[1], folder)
			}
		}
	}
	for name := range said {
		if !listed[name] {
			t.Errorf("the list lacks %s", name)
		}
	}
	if len(said) < 50 {
		t.Errorf("only %d tests are spoken of: is the page read as it is written?", len(said))
	}
}

// TestTheSecurityPageSaysWhatCanBeTyped: on a bad day a command has to be right. Each is
// one of the programs', with each of its flags.
func TestTheSecurityPageSaysWhatCanBeTyped(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the three programs")
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "./host/cmd/mesh-host", "./controlplane/cmd/mesh-controller", "./release/cmd/mesh-release")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	usage, flag := regexp.MustCompile(`(?m)^Usage:\n  (.*)$`), regexp.MustCompile(`--[a-z][a-z-]+`)
	typed := 0
	for _, m := range commandsSaid.FindAllStringSubmatchIndex(words(t, "docs/security.md"), -1) {
		page := words(t, "docs/security.md")
		rest, _, _ := strings.Cut(page[m[0]:], "\n")
		rest, _, _ = strings.Cut(rest, "`")
		rest, _, _ = strings.Cut(rest, " #")
		line, _, _ := strings.Cut(rest, " | ")
		typing := strings.Fields(line)
		if m[0] > 0 && page[m[0]-1] == '-' || len(typing) < 2 { // a part of another word
			continue
		}
		verb := typing[1:2]
		if slices.Contains([]string{"token", "keys", "address", "identity", "bundle", "repo"}, verb[0]) && len(typing) > 2 {
			verb = typing[1:3]
		}
		out, err := exec.Command(filepath.Join(dir, typing[0]), append(slices.Clone(verb), "--help")...).Output()
		want := typing[0] + " " + strings.Join(verb, " ")
		if u := usage.FindSubmatch(out); err != nil || u == nil || !strings.HasPrefix(string(u[1])+" ", want+" ") {
			t.Errorf("%q: there is no %q: %v", line, want, err)
		}
		for _, f := range flag.FindAllString(line, -1) {
			if !regexp.MustCompile(regexp.QuoteMeta(f) + `\b`).Match(out) {
				t.Errorf("%q: %s has no %s", line, want, f)
			}
		}
		typed++
	}
	if typed < 20 {
		t.Errorf("only %d commands are found: is the page read as it is written?", typed)
	}
}

func words(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
