package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// program has a command of each shape that ours have.
func program() *cobra.Command {
	var n uint64
	var ttl time.Duration
	var yes bool
	ran := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "p", Args: cobra.NoArgs, RunE: ran}
	var json, quiet, verbose bool
	LoudnessFlags(root, &json, &quiet, &verbose)
	make := &cobra.Command{Use: "make DIR", Args: cobra.ExactArgs(1), RunE: ran}
	make.Flags().Uint64VarP(&n, "number", "n", 0, "")
	make.Flags().DurationVar(&ttl, "ttl", 0, "")
	make.Flags().BoolVar(&yes, "yes", false, "")
	either := &cobra.Command{Use: "either", RunE: ran}
	for _, f := range []string{"a", "b", "c", "d"} {
		either.Flags().Bool(f, false, "")
	}
	either.MarkFlagsMutuallyExclusive("a", "b")
	either.MarkFlagsRequiredTogether("c", "d")
	needs := &cobra.Command{Use: "needs", RunE: ran}
	needs.Flags().String("to", "", "")
	_ = needs.MarkFlagRequired("to")
	one := &cobra.Command{Use: "one", RunE: ran}
	one.Flags().Bool("e", false, "")
	one.Flags().Bool("f", false, "")
	one.MarkFlagsOneRequired("e", "f")
	keys := &cobra.Command{Use: "keys", Args: cobra.NoArgs, RunE: ran}
	keys.AddCommand(&cobra.Command{Use: "export DIR FILE…", Args: cobra.MinimumNArgs(2), RunE: ran})
	own := &cobra.Command{Use: "own -", RunE: ran, Args: func(*cobra.Command, []string) error {
		return fault.Usagef("cannot own: no").Hint("say yes")
	}}
	root.AddCommand(make, keys, either, needs, one, own)
	return root
}

// TestWrongUsageIsSaidInOurWords: each of these was cobra's sentence before, and
// some had no remedy.
func TestWrongUsageIsSaidInOurWords(t *testing.T) {
	for line, want := range map[string]string{
		"bogus":                                `cannot run "p": there is no command "bogus"; see p --help`,
		"maek":                                 `cannot run "p": there is no command "maek"; did you mean p make?`,
		"keys exprt":                           `cannot run "p keys": there is no command "exprt"; did you mean p keys export?`,
		"make":                                 `cannot run "p make": it takes DIR, and no argument is given; see p make --help`,
		"make a b":                             `cannot run "p make": it takes DIR, and 2 arguments are given; see p make --help`,
		"keys export a":                        `cannot run "p keys export": it takes DIR FILE…, and 1 argument is given; see p keys export --help`,
		"either x":                             `cannot run "p either": it takes no argument, and 1 argument is given; see p either --help`,
		"completion bash x":                    `cannot run "p completion bash": it takes no argument, and 1 argument is given; see p completion bash --help`,
		"completion nushell":                   `cannot run "p completion": there is no command "nushell"; see p completion --help`,
		"help bogus":                           `cannot run "p": there is no command "bogus"; see p --help`,
		"help keys bogus":                      `cannot run "p keys": there is no command "bogus"; see p keys --help`,
		"make --bogus d":                       `cannot run "p make": there is no flag --bogus; see p make --help`,
		"--bogus":                              `cannot run "p": there is no flag --bogus; see p --help`,
		"make -x d":                            `cannot run "p make": there is no flag -x; see p make --help`,
		"make d --number":                      `cannot run "p make": --number needs a value; see p make --help`,
		"make d -n":                            `cannot run "p make": -n needs a value; see p make --help`,
		"make --number=-1 d":                   `cannot run "p make": "-1" is not what --number takes: a whole number, 0 or more; see p make --help`,
		"make --number=99999999999999999999 d": `cannot run "p make": "99999999999999999999" is not what --number takes: it is too large; see p make --help`,
		"make --ttl soon d":                    `cannot run "p make": "soon" is not what --ttl takes: a time, as 90s, 15m or 2h; see p make --help`,
		"make --yes=perhaps d":                 `cannot run "p make": "perhaps" is not what --yes takes: true or false; see p make --help`,
		"make --=x d":                          `cannot run "p make": "--=x" is no flag; see p make --help`,
		"either --a --b":                       `cannot run "p either": --a, --b exclude each other; see p either --help`,
		"either --c":                           `cannot run "p either": --c, --d are given together or not at all; see p either --help`,
		"one":                                  `cannot run "p one": one of --e, --f must be given; see p one --help`,
		"needs":                                `cannot run "p needs": --to must be given; see p needs --help`,
		"own":                                  `cannot own: no; say yes`,
	} {
		var out bytes.Buffer
		err := Execute(context.Background(), program(), strings.Fields(line), Stdio{In: strings.NewReader(""), Out: &out, Err: &out})
		if fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v, want wrong usage", line, err)
			continue
		}
		if PrintFault(&out, "p", err, false); out.String() != "p: "+want+"\n" {
			t.Errorf("%s:\n%swant\np: %s", line, out.String(), want)
		}
	}
}

func TestRightUsageRuns(t *testing.T) {
	for _, line := range []string{"", "make d -n 3 --ttl 2h --quiet", "keys", "keys export a b c", "either --a --c --d", "help", "help keys export", "needs --to x", "completion bash"} {
		var out bytes.Buffer
		if err := Execute(context.Background(), program(), strings.Fields(line), Stdio{In: strings.NewReader(""), Out: &out, Err: &out}); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestCompletionHasAnExample(t *testing.T) {
	for line, want := range map[string]string{
		"completion":      "Examples:\n  source <(p completion bash)\n",
		"completion bash": "Examples:\n  p completion bash > /usr/share/bash-completion/completions/p\n",
		"completion zsh":  "Examples:\n  p completion zsh > /usr/share/zsh/site-functions/_p\n",
		"completion fish": "Examples:\n  p completion fish > /usr/share/fish/vendor_completions.d/p.fish\n",
	} {
		var out bytes.Buffer
		err := Execute(context.Background(), program(), append(strings.Fields(line), "--help"), Stdio{In: strings.NewReader(""), Out: &out, Err: &out})
		if err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s", line, err, out.String())
		}
	}
}
