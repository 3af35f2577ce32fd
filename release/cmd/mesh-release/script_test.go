package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mesh-release": main})
}

// TestScripts runs the scripts of testdata/script. Each has the passphrase in
// the file "secret" and the source tree of this project as $REPO.
func TestScripts(t *testing.T) {
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("REPO", repo)
			if out, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil {
				env.Setenv("GOCACHE", strings.TrimSpace(string(out)))
			}
			return os.WriteFile(filepath.Join(env.WorkDir, "secret"), []byte("correct horse\n"), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"modes": modes, "flip": flip,
		},
	})
}

// modes MODE FILE… checks the exact permission bits.
func modes(ts *testscript.TestScript, neg bool, args []string) {
	for _, f := range args[1:] {
		fi, err := os.Stat(ts.MkAbs(f))
		ts.Check(err)
		if got := fmt.Sprintf("%04o", fi.Mode().Perm()); (got == args[0]) == neg {
			ts.Fatalf("%s has mode %s", f, got)
		}
	}
}

// flip FILE flips a bit in the middle of the file.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	b[len(b)/2] ^= 1
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o600))
}
