package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin/bundletest"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/repository/seedtest"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mesh-controller": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("NOX_ROOT", filepath.Join(e.WorkDir, "root"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":    exits,
			"nosecret": noSecret,
			"bundle":   signedBundle,
			"release":  signedRelease,
		},
	})
}

// publishers are those of a script, by its working directory and their names.
var publishers sync.Map

// signedBundle is the command "bundle PUBLISHER FILE NAME COUNTER CONTENT...": a
// bundle with a file of each content. The machine of the script trusts the
// publisher "trusted".
func signedBundle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: bundle PUBLISHER FILE NAME COUNTER CONTENT...")
	}
	made, err := bundletest.New()
	ts.Check(err)
	is, _ := publishers.LoadOrStore(ts.MkAbs(args[0]), made)
	p := is.(*bundletest.Publisher)
	if args[0] == "trusted" {
		ts.Check(p.TrustedBy(layout.Layout{Root: ts.Getenv("NOX_ROOT")}))
	}
	counter, err := strconv.ParseUint(args[3], 10, 64)
	ts.Check(err)
	ts.Check(bundletest.Build(context.Background(), ts.MkAbs(args[1]), p.Spec(args[2], counter, args[4:]...)))
}

// signedRelease is the command "release PUBLISHER FILE ARCHITECTURE COUNTER": the
// bundle of a release that new machines can be served.
func signedRelease(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: release PUBLISHER FILE ARCHITECTURE COUNTER")
	}
	made, err := seedtest.New()
	ts.Check(err)
	is, _ := publishers.LoadOrStore(ts.MkAbs("releases of "+args[0]), made)
	p := is.(*seedtest.Publisher)
	if args[0] == "trusted" {
		ts.Check(p.TrustedBy(layout.Layout{Root: ts.Getenv("NOX_ROOT")}))
	}
	counter, err := strconv.ParseUint(args[3], 10, 64)
	ts.Check(err)
	r, err := p.Release(args[2], counter)
	ts.Check(err)
	ts.Check(r.Bundle(context.Background(), ts.MkAbs(args[1])))
}

// exits CODE PROGRAM ARG... runs a program and wants that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ended *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// nosecret TOKEN-FILE PATH... wants the secret of a token to be in no file.
func noSecret(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: nosecret TOKEN-FILE PATH...")
	}
	parts := strings.Split(ts.ReadFile(args[0]), ".")
	if len(parts) != 4 || len(parts[2]) != 43 {
		ts.Fatalf("%q holds no token", args[0])
	}
	secret, read := []byte(parts[2]), 0
	for _, dir := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, secret) {
				ts.Fatalf("the secret is in %q", path)
			}
			read += len(b)
			return err
		}))
	}
	if read == 0 {
		ts.Fatalf("nothing was read")
	}
}
