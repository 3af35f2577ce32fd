package bundle

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestNoClockIsConsulted: a bundle and its roots verify as well long before they
// were made as a century later (decision 7). In a bubble (testing/synctest) the
// clock stands at the year 2000 and goes as the test says.
func TestNoClockIsConsulted(t *testing.T) {
	k := newKey(t)
	h := newHouse(t)
	h.root = k
	spec := specOf(3000, k)
	spec.Created = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	b := bytesOf(t, spec)
	synctest.Test(t, func(t *testing.T) {
		for _, year := range []int{2000, 2100, 2200} {
			time.Sleep(time.Until(time.Date(year, 1, 2, 0, 0, 0, 0, time.UTC)))
			if now := time.Now().Year(); now != year {
				t.Fatalf("the clock of the test stands at %d", now)
			}
			store := openStore(t)
			info, err := Read(ctx, bytes.NewReader(b), Options{Policy: trusting(t, k.Public()), Store: store})
			if err != nil {
				t.Fatalf("in the year %d: %v", year, err)
			}
			if _, err := Stored(ctx, store, info.Digest, trusting(t, k.Public())); err != nil {
				t.Errorf("in the year %d, stored: %v", year, err)
			}
			if got := bytesOf(t, spec); !bytes.Equal(got, b) {
				t.Errorf("in the year %d other bytes are built", year)
			}
		}
	})
}

// TestNoClockIsNamed: what reads and verifies does not even name the functions
// that ask what time it is. The times of a package's signature are handed in.
func TestNoClockIsNamed(t *testing.T) {
	asks := map[string]bool{"Now": true, "Since": true, "Until": true, "After": true, "AfterFunc": true, "NewTimer": true, "NewTicker": true, "Tick": true, "Sleep": true}
	seen := 0
	for _, dir := range []string{".", "trust", "internal/canonical"} {
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			seen++
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range tree.Imports {
				if strings.HasSuffix(i.Path.Value, `/internal/clock"`) {
					t.Errorf("%s imports the clock", name)
				}
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && asks[s.Sel.Name] {
						t.Errorf("%s: time.%s", set.Position(n.Pos()), s.Sel.Name)
					}
				}
				return true
			})
		}
	}
	if seen < 20 {
		t.Errorf("only %d files were read", seen)
	}
}
