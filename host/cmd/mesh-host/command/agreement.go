package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/secret"
)

// An agreement is how a command that takes things away is told to: a person at a
// terminal is shown what goes and asked, a script says --yes.
type agreement struct {
	yes, dryRun bool
}

func (a *agreement) flags(c *cobra.Command) {
	c.Flags().BoolVarP(&a.yes, "yes", "y", false, "do it without asking")
	c.Flags().BoolVar(&a.dryRun, "dry-run", false, "only show what goes")
	c.MarkFlagsMutuallyExclusive("yes", "dry-run")
}

// possible refuses, before anything is looked at, where nobody could be asked.
func (a *agreement) possible(p *program, verb string) error {
	if a.yes || a.dryRun {
		return nil
	}
	if in, ok := p.std.In.(*os.File); ok && secret.IsTerminal(in) && !p.json {
		return nil
	}
	return fault.Usagef("cannot %s without being told to: nobody is at a terminal to be asked", verb).
		Hint("say --yes; --dry-run shows what goes")
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 1 << 10

// ask asks the person at the terminal, and is a fault unless they agree.
func (a *agreement) ask(ctx context.Context, p *program, question string) error {
	fmt.Fprintf(p.std.Err, "\n%s [y/N] ", question)
	answer, err := bufio.NewReader(io.LimitReader(input.Interruptible(ctx, p.std.In), maxAnswer)).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	if err == io.EOF {
		fmt.Fprintln(p.std.Err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fault.Failedf("nothing was changed")
}
