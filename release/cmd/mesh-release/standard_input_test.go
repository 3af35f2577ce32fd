package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// called runs the program in this process, and says how it ended; a panic is an error.
func called(t *testing.T, in string, args ...string) (out string, err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panics: %v\n%s", p, debug.Stack())
			t.Errorf("%q: %v", args, err)
		}
	}()
	var b strings.Builder
	err = run(t.Context(), args, cli.Stdio{In: strings.NewReader(in), Out: &b, Err: &b})
	return b.String(), err
}

// words are the arguments that the command wants, as its line of usage names them.
func words(c *cobra.Command) int { return len(strings.Fields(c.Use)) - 1 }

// TestStandardInputInThePlaceOfEveryName gives "-" for each flag that takes a value, and
// for each argument, of each command there is. It means standard input or it is no file;
// it is not a crash.
func TestStandardInputInThePlaceOfEveryName(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("NOX_PASSPHRASE_FILE", "")
	if out, err := called(t, testPassphrase+"\n", "keys", "init", "keys", "--passphrase-file", "-"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile("file", []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}

	said := func(args []string, err error) {
		t.Helper()
		if err == nil {
			return
		}
		text := err.Error()
		var ours *fault.Error
		if !strings.HasPrefix(text, "cannot ") && !errors.As(err, &ours) || strings.Contains(text, "internal error") || strings.Contains(text, "runtime error") {
			t.Errorf("%q: %v", args, err)
		}
	}
	flags := 0
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		for _, sub := range c.Commands() {
			walk(sub, append(path[:len(path):len(path)], sub.Name()))
		}
		if c.HasSubCommands() || len(path) == 0 {
			return
		}
		arguments := func(of string) (out []string) {
			for range words(c) {
				out = append(out, of)
			}
			return out
		}
		for _, of := range []string{"-", "file", "keys"} {
			var takes []string
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if f.Value.Type() != "bool" && !strings.HasPrefix(f.Value.Type(), "uint") {
					takes = append(takes, f.Name)
				}
			})
			for _, flag := range append(takes, "") {
				args := append(path[:len(path):len(path)], arguments(of)...)
				for _, f := range takes {
					given := map[string]string{"keys": "keys", "trust": "keys", "version": "1.0.0", "passphrase-file": "-", "out": "new"}[f]
					if f == flag {
						given = "-"
						flags++
					}
					if given != "" {
						args = append(args, "--"+f, given)
					}
				}
				_, err := called(t, testPassphrase+"\n", args...)
				said(args, err)
			}
		}
	}
	walk(commands(t.Context(), cli.Stdio{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}), nil)
	if flags < 60 {
		t.Errorf("only %d flags were given: is this the whole tree?", flags)
	}
}
