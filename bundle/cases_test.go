package bundle

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTCases holds that each hard case has a test, by name: what is in the list is
// in the source, and what the source calls a case is in the list. With -v it
// prints which test holds which case.
func TestTCases(t *testing.T) {
	source := map[string]map[string][]string{} // folder, test, the strings in it
	listed := map[string]bool{}
	cases := map[string]bool{}
	for line := range strings.Lines(string(must[[]byte](t)(os.ReadFile("testdata/cases")))) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSpace(line), " | ")
		if len(f) != 4 {
			t.Fatalf("%q is no line of the list", line)
		}
		id, what, dir, name := f[0], f[1], f[2], f[3]
		if source[dir] == nil {
			source[dir] = tests(t, filepath.Join("..", dir))
		}
		test, sub, _ := strings.Cut(name, "/")
		strs, ok := source[dir][test]
		switch {
		case !ok:
			t.Errorf("%s: there is no %s in %s", id, test, dir)
		case sub == "" && !strings.Contains(test, strings.ReplaceAll(id, "-", "")):
			t.Errorf("%s: the name of %s does not say so", id, test)
		case sub != "" && (!strings.HasPrefix(sub, id) || !slices.ContainsFunc(strs, func(s string) bool { return strings.Contains(s, sub) })):
			t.Errorf("%s: %s has no part that is called %q", id, test, sub)
		}
		listed[dir+" "+name], cases[id] = true, true
		t.Logf("%-5s %-55s ./%s %s", id, what, dir, name)
	}
	// The cases there are.
	for _, n := range []int{3, 10, 14, 17, 19, 20, 21, 22, 26, 27, 30, 31, 32, 35, 36, 39, 41, 42, 43, 46, 47, 51, 54} {
		if id := "T-" + strconv.Itoa(100 + n)[1:]; !cases[id] {
			t.Errorf("%s has no test", id)
		}
	}
	called := regexp.MustCompile(`^TestT([0-9]{2})`)
	spoken := regexp.MustCompile(`\bT-[0-9]{2}\b`)
	for dir, all := range source {
		for test, strs := range all {
			if called.MatchString(test) && !listed[dir+" "+test] {
				t.Errorf("%s of %s is not in the list", test, dir)
			}
			for _, s := range strs {
				for _, id := range spoken.FindAllString(s, -1) {
					if !cases[id] {
						t.Errorf("%s of %s speaks of %s, which is no case", test, dir, id)
					}
				}
			}
		}
	}
}

// tests are the tests of a folder, whatever they are built with, each with the
// strings in it.
func tests(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files := must[[]string](t)(filepath.Glob(filepath.Join(dir, "*_test.go")))
	out := map[string][]string{}
	for _, name := range files {
		tree := must[*ast.File](t)(parser.ParseFile(token.NewFileSet(), name, nil, 0))
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			strs := []string{}
			ast.Inspect(f, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					strs = append(strs, must[string](t)(strconv.Unquote(lit.Value)))
				}
				return true
			})
			out[f.Name.Name] = strs
		}
	}
	return out
}
