package hardcases

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root = "../.."
	list = "testdata/cases"
	// none stands where a case, or a half of one, has no test yet.
	none = "no test"
)

// contract is which cases there are, by their letter: each must be in the list.
var contract = map[string][]int{
	"F": {1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12},                 // files
	"P": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},              // packages
	"U": {1, 2, 3, 4, 5, 6, 7, 9, 10},                         // units
	"C": {1, 2, 3, 4, 5, 6},                                   // containers
	"R": {1, 2, 3, 4, 5, 6, 7, 8, 9, 11},                      // processes that run
	"H": {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13},              // the host's loop and store
	"S": {1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13},                // replacing itself
	"I": {1, 4, 5, 8, 10, 11, 12, 13, 14},                     // installing
	"E": {2, 3, 5, 6, 10, 12, 14, 15, 16, 17, 18, 19, 20, 24}, // enrolment
	"L": {1, 4, 5, 6, 7, 9, 10, 12},                           // the link
	"D": {1, 5, 9},                                            // the control plane's state
	"T": {3, 10, 14, 17, 19, 20, 21, 22, 26, 27, 30, 31, // bundles
		32, 35, 36, 39, 41, 42, 43, 46, 47, 51, 54},
}

// more are cases without a number.
var more = []string{"zstd"}

// A line of the list: a case, what half of it is meant, and the test that holds it.
type line struct{ id, what, dir, test, part string }

func (l line) String() string {
	if l.dir == none {
		return none
	}
	name := l.test
	if l.part != "" {
		name += "/" + l.part
	}
	return "./" + l.dir + " " + name
}

// TestCases holds that the list is true: each case is in it, each test of it is
// there and called so, and what the source calls a case is in the list. With -v
// it prints the list.
func TestCases(t *testing.T) {
	known := slices.Clone(more)
	for letter, numbers := range contract {
		for _, n := range numbers {
			known = append(known, fmt.Sprintf("%s-%02d", letter, n))
		}
	}
	source := tests(t)
	lines := read(t)
	listed, held := map[string]bool{}, map[string]int{}
	for _, l := range lines {
		t.Logf("%-5s %-60s %s", l.id, l.what, l)
		if !slices.Contains(known, l.id) {
			t.Errorf("%s is no case of the contract", l.id)
		}
		if listed[l.id+" "+l.String()] && l.dir != none {
			t.Errorf("%s: %s is there twice", l.id, l)
		}
		listed[l.id+" "+l.String()] = true
		held[l.id] += 0 // it is in the list
		if l.dir == none {
			continue
		}
		held[l.id]++
		if why := l.untrue(source); why != "" {
			t.Errorf("%s: %s", l.id, why)
		}
	}
	for _, id := range known {
		if _, ok := held[id]; !ok {
			t.Errorf("%s is not in the list", id)
		}
	}
	for dir, all := range source {
		for test, said := range all {
			for _, id := range called(test) {
				if l := (line{id: id, dir: dir, test: test}); !listed[id+" "+l.String()] {
					t.Errorf("%s: the list lacks %s", id, l)
				}
			}
			for _, s := range said {
				for _, id := range spoken.FindAllString(s, -1) {
					if !slices.Contains(known, id) {
						t.Errorf("%s of %s speaks of %s, which is no case", test, dir, id)
					}
				}
				if id := spoken.FindString(s); id != "" && strings.HasPrefix(s, id) && !slices.ContainsFunc(lines, func(l line) bool {
					return l.id == id && l.dir == dir && l.test == test && l.part != "" && strings.HasPrefix(s, l.part)
				}) {
					t.Errorf("%s: the list lacks the part %q of %s in %s", id, s, test, dir)
				}
			}
		}
	}
	if !t.Failed() {
		t.Log(count(known, held))
	}
}

// count says how many tests each case has.
func count(known []string, held map[string]int) string {
	slices.Sort(known)
	var out strings.Builder
	for _, id := range known {
		fmt.Fprintf(&out, "%s %d  ", id, held[id])
	}
	return out.String()
}

// untrue says what is wrong with a line, or "".
func (l line) untrue(source map[string]map[string][]string) string {
	said, ok := source[l.dir][l.test]
	switch {
	case !ok:
		return fmt.Sprintf("there is no %s in %s", l.test, l.dir)
	case l.part == "" && !slices.Contains(called(l.test), l.id):
		return fmt.Sprintf("the name of %s does not say so", l.test)
	case l.part != "" && !strings.HasPrefix(l.part, l.id):
		return fmt.Sprintf("the part %q does not begin so", l.part)
	case l.part != "" && !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, l.part) }):
		return fmt.Sprintf("%s has no part that is called %q", l.test, l.part)
	}
	return ""
}

// letters are those of the contract.
func letters() string {
	var all []string
	for l := range contract {
		all = append(all, l)
	}
	slices.Sort(all)
	return "[" + strings.Join(all, "") + "]"
}

var (
	name   = regexp.MustCompile(`^Test(?:Machine)?((?:` + letters() + `[0-9]{2})+)`)
	number = regexp.MustCompile(letters() + `[0-9]{2}`)
	spoken = regexp.MustCompile(`\b` + letters() + `-[0-9]{2}\b`)
)

// called are the cases that a test is called after.
func called(test string) (ids []string) {
	if m := name.FindStringSubmatch(test); m != nil {
		for _, id := range number.FindAllString(m[1], -1) {
			ids = append(ids, id[:1]+"-"+id[1:])
		}
	}
	return ids
}

func read(t *testing.T) (out []line) {
	t.Helper()
	b, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(b)) {
		text = strings.TrimSuffix(text, "\n")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		f := strings.Split(text, " | ")
		switch {
		case len(f) == 3 && f[2] == none:
			out = append(out, line{id: f[0], what: f[1], dir: none})
		case len(f) == 4:
			test, part, _ := strings.Cut(f[3], "/")
			out = append(out, line{f[0], f[1], f[2], test, part})
		default:
			t.Fatalf("%q is no line of the list", text)
		}
	}
	return out
}

// tests are the tests of the whole source, whatever they are built with, by
// folder and name, each with the strings in it.
func tests(t *testing.T) map[string]map[string][]string {
	t.Helper()
	out := map[string]map[string][]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if path != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "dist") {
				return filepath.SkipDir
			}
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil || !strings.HasSuffix(path, "_test.go") || dir == "lab/hardcases" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		if out[dir] == nil {
			out[dir] = map[string][]string{}
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				out[dir][f.Name.Name] = stringsIn(f)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func stringsIn(n ast.Node) (out []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				out = append(out, s)
			}
		}
		return true
	})
	return out
}
