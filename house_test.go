// Package house holds what the repository asks of itself: who may import whom,
// which doors side effects go through, how long a file may be. A rule that is
// not a test is a wish.
package house

import (
	"bufio"
	"bytes"
	"debug/elf"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/nox-mesh/nox-mesh/"

var update = flag.Bool("update", false, "write the golden files again")

// floors says which folders a folder may import, and why it may not more. The
// longest prefix of a package decides for it.
var floors = map[string]struct {
	may []string
	why string
}{
	"internal":     {nil, "the doors and the manners stand on nothing of ours"},
	"pkgbuild":     {nil, "packaging is data"},
	"bundle":       {[]string{"internal"}, "a bundle carries bytes and digests; it knows nothing of hosts"},
	"host":         {[]string{"bundle", "pkgbuild", "internal"}, "a host must work where there is no control plane and no publisher"},
	"host/cmd":     {[]string{"host", "installer", "bundle", "pkgbuild", "internal"}, "the command joins host and installer; nothing else does"},
	"installer":    {[]string{"bundle/trust", "pkgbuild", "internal"}, "what lays the host down must not depend on how the host works"},
	"controlplane": {[]string{"bundle", "internal", "host/declaration", "host/link", "host/profile"}, "the control plane shares words with the host, never its behaviour"},
	"release":      {[]string{"bundle", "pkgbuild", "internal", "host/declaration"}, "publishing needs the formats, not the programs"},
	"lab":          {[]string{"internal", "host/declaration", "host/link", "host/profile"}, "the lab tests the binaries that users get"},
}

// notEven are exceptions within a floor's permission.
var notEven = map[string]map[string]string{
	"controlplane": {"host/link/client": "that is the node's side"},
	"lab":          {"host/link/client": "that is the node's side"},
}

type file struct {
	path string // from the repository's root
	pkg  string // folder of it
	ast  *ast.File
	set  *token.FileSet
	text []byte
}

func sources(t *testing.T) []file {
	t.Helper()
	var out []file
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "dist") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(p) != ".go" {
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		a, err := parser.ParseFile(set, p, b, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, file{p, filepath.Dir(p), a, set, b})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("only %d source files: is this the repository's root?", len(out))
	}
	return out
}

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func under(pkg, floor string) bool { return pkg == floor || strings.HasPrefix(pkg, floor+"/") }

func floorOf(pkg string) string {
	best := ""
	for f := range floors {
		if under(pkg, f) && len(f) > len(best) {
			best = f
		}
	}
	return best
}

func TestWhoMayImportWhom(t *testing.T) {
	for _, f := range sources(t) {
		floor := floorOf(f.pkg)
		if floor == "" {
			if f.pkg != "." {
				t.Errorf("%s: no floor is named for this folder", f.path)
			}
			continue
		}
		for _, i := range f.ast.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			dep, ours := strings.CutPrefix(p, module)
			if !ours || floorOf(dep) == floor && (floor != "host" || !under(dep, "host/cmd")) {
				continue
			}
			ok := slices.ContainsFunc(floors[floor].may, func(m string) bool { return under(dep, m) })
			reason := floors[floor].why
			for ban, why := range notEven[floor] {
				if under(dep, ban) {
					ok, reason = false, why
				}
			}
			if !ok {
				t.Errorf("%s imports %s: %s", f.path, dep, reason)
			}
		}
	}
}

func TestEachPackageTellsItsStoryOnce(t *testing.T) {
	docs, seen := map[string]int{}, map[string]bool{}
	for _, f := range sources(t) {
		if f.isTest() && f.pkg != "." {
			continue
		}
		seen[f.pkg] = true
		if f.ast.Doc != nil {
			docs[f.pkg]++
		}
	}
	for p := range seen {
		if docs[p] != 1 {
			t.Errorf("%s has %d package comments, want one", p, docs[p])
		}
	}
}

// doors are the calls that have one door, and where that door is.
var doors = map[string]struct{ door, instead string }{
	"os.WriteFile":        {"internal/durable", "durable.WriteFile"},
	"os.Create":           {"internal/durable", "durable"},
	"os.Rename":           {"internal/durable", "durable.Rename"},
	"exec.Command":        {"internal/child", "child.Run"},
	"exec.CommandContext": {"internal/child", "child.Run"},
	"time.Now":            {"internal/clock", "a clock.Clock"},
	"time.Sleep":          {"", "an event"},
}

// exempt may use what they name besides the doors, and say why.
var exempt = map[string]string{
	"lab":                                 "a test bench, not a part of the product",
	"host/internal/supervise":             "the shim stands on the standard library alone, to share nothing that could break with it",
	"host/internal/launcher":              "the launcher stands on the standard library alone",
	"host/internal/slots":                 "the state of the two",
	"host/internal/resource/resourcetest": "a test suite",
}

func TestSideEffectsGoThroughTheirDoors(t *testing.T) {
	for _, f := range sources(t) {
		if f.isTest() || slices.ContainsFunc(keys(exempt), func(e string) bool { return under(f.pkg, e) }) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if !ok {
				return true
			}
			d, ok := doors[x.Name+"."+s.Sel.Name]
			if ok && f.pkg != d.door {
				t.Errorf("%s: %s.%s: use %s", f.set.Position(n.Pos()), x.Name, s.Sel.Name, d.instead)
			}
			return true
		})
	}
}

func TestFilesAndFoldersStaySmallAndNamed(t *testing.T) {
	for _, f := range sources(t) {
		lines := bytes.Count(f.text, []byte("\n"))
		if lines > 700 {
			t.Errorf("%s has %d lines, at most 700", f.path, lines)
		}
		if filepath.Base(f.path) == "main.go" && lines > 40 {
			t.Errorf("%s has %d lines: a main is at most 40", f.path, lines)
		}
		for part := range strings.SplitSeq(f.pkg, "/") {
			if slices.Contains([]string{"util", "utils", "common", "helpers", "pkg", "types", "misc"}, part) {
				t.Errorf("%s: a folder says what is in it", f.path)
			}
		}
	}
}

func TestTheLauncherAndTheShimShareNothingButTheirState(t *testing.T) {
	const shared = "host/internal/slots"
	alone := []string{"host/internal/supervise", "host/internal/launcher", shared}
	for _, f := range sources(t) {
		if f.isTest() || !slices.ContainsFunc(alone, func(p string) bool { return under(f.pkg, p) }) {
			continue
		}
		for _, i := range f.ast.Imports {
			if p, _ := strconv.Unquote(i.Path.Value); strings.Contains(p, ".") && !strings.HasSuffix(p, "/"+shared) {
				t.Errorf("%s imports %s: only the standard library, and %s", f.path, p, shared)
			}
		}
	}
}

func TestGoModHasNoReplace(t *testing.T) {
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("\nreplace")) {
		t.Error("go.mod replaces a module")
	}
}

// TestDependenciesOfTheHost holds the list of what runs as root on every
// machine: a new line in it is seen in review. Write it again with -update.
func TestDependenciesOfTheHost(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./host/cmd/mesh-host").Output()
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if m := s.Text(); m != "" && m+"/" != module {
			set[m] = true
		}
	}
	got := strings.Join(slices.Sorted(func(yield func(string) bool) {
		for m := range set {
			if !yield(m) {
				return
			}
		}
	}), "\n") + "\n"
	const golden = "testdata/mesh-host.dependencies"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("mesh-host depends on\n%swant\n%s(go test . -update)", got, want)
	}
}

// budget is the size of mesh-host, stripped, in bytes.
const budget = 14_000_000

// TestHostIsStaticAndSmall builds the host as it is shipped.
func TestHostIsStaticAndSmall(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "mesh-host")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "./host/cmd/mesh-host")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fi, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	if fi.Size() > budget {
		t.Errorf("mesh-host is %d bytes, the budget is %d", fi.Size(), budget)
	}
	e, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("mesh-host has a %v segment: it is not static", p.Type)
		}
	}
}

// commandsSaid finds the commands a text tells a person to run.
var commandsSaid = regexp.MustCompile("(mesh-host|mesh-controller|mesh-release)((?: [a-z][a-z-]*)+)")

// TestRemediesNameCommandsThatExist: a remedy that cannot be followed is worse
// than none. What is said in a Hint, and what stands between backquotes in any
// text of the programs, must be commands that the programs have.
func TestRemediesNameCommandsThatExist(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the three programs")
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "./host/cmd/mesh-host", "./controlplane/cmd/mesh-controller", "./release/cmd/mesh-release")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	exists := map[string]bool{}
	check := func(at, program string, words []string) {
		// The verb, or a verb of two words; what follows may be prose.
		known := func(verb string) bool {
			if ok, asked := exists[program+verb]; asked {
				return ok
			}
			args := append(strings.Fields(verb), "--help")
			ok := exec.Command(filepath.Join(dir, program), args...).Run() == nil
			exists[program+verb] = ok
			return ok
		}
		// These are the launcher's and answer no --help.
		if slices.Contains([]string{"launch", "post", "shim", "reload"}, words[0]) {
			return
		}
		if !known(words[0]) {
			t.Errorf("%s: there is no command %q", at, program+" "+words[0])
		}
	}
	quoted := regexp.MustCompile("`[^`]*`")
	for _, f := range sources(t) {
		if f.isTest() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			lit, inHint := "", false
			switch n := n.(type) {
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Hint" && len(n.Args) > 0 {
					if b, ok := n.Args[0].(*ast.BasicLit); ok {
						lit, inHint = b.Value, true
					}
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING && strings.HasPrefix(n.Value, "\"") {
					lit = n.Value
				}
			}
			if lit == "" {
				return true
			}
			text, err := strconv.Unquote(lit)
			if err != nil {
				return true
			}
			if !inHint {
				text = strings.Join(quoted.FindAllString(text, -1), " ")
			}
			for _, m := range commandsSaid.FindAllStringSubmatch(text, -1) {
				check(f.set.Position(n.Pos()).String(), m[1], strings.Fields(m[2]))
			}
			return true
		})
	}
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}
