package place

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestWhatComesMeanwhileIsNotRemoved: somebody writes into the directory after it
// was looked at, while the new one is filled.
func TestWhatComesMeanwhileIsNotRemoved(t *testing.T) {
	for what, meddle := range map[string]func(dir string) error{
		"nothing":       func(string) error { return nil },
		"a file more":   func(dir string) error { return os.WriteFile(dir+"/notes", []byte("precious"), 0o600) },
		"a folder more": func(dir string) error { return os.Mkdir(dir+"/sub/mine", 0o700) },
		"another text":  func(dir string) error { return os.WriteFile(dir+"/sub/old", []byte("edited"), 0o600) },
		"a file less":   func(dir string) error { return os.Remove(dir + "/sub/old") },
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			if err := os.MkdirAll(dir+"/sub", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir+"/sub/old", []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := Open(dir, false)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if err := Lock(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if err := p.Begin(); err != nil {
				t.Fatal(err)
			}
			err = p.Replace(func(next *durable.Dir) error {
				if err := os.WriteFile(next.Name()+"/new", nil, 0o600); err != nil {
					return err
				}
				return meddle(dir)
			})
			_, replaced := os.Stat(dir + "/new")
			if what == "nothing" {
				if err != nil || replaced != nil {
					t.Errorf("%v, %v", err, replaced)
				}
			} else if fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "somebody changed") || replaced == nil {
				t.Errorf("%v, %v", err, replaced)
			}
			if what == "a file more" {
				if b, err := os.ReadFile(dir + "/notes"); err != nil || string(b) != "precious" {
					t.Errorf("%q, %v", b, err)
				}
			}
			if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
				t.Errorf("left beside it: %v, %v", left, err)
			}
		})
	}
}
