// Package manpage writes the manual page of a program from its commands, so
// that the page says what the binary does: one page, section 8, all commands.
//
// It promises the same text for the same commands, without a date. It knows
// what cobra knows, and the exit statuses of internal/fault.
package manpage

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Command returns the hidden command "man", which prints the page of the program
// it is added to. Packages are made with it.
func Command() *cobra.Command {
	return &cobra.Command{
		Use: "man", Short: "Print the manual page", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return Write(c.OutOrStdout(), c.Root()) },
	}
}

// Write writes the page of the program whose top command is root, man(7).
func Write(w io.Writer, root *cobra.Command) error {
	p := &page{}
	p.line(".TH %s 8 \"\" \"nox-mesh\" \"System administration\"", strings.ToUpper(text(root.Name())))
	p.line(".SH NAME\n%s \\- %s", text(root.Name()), text(root.Short))
	p.line(".SH SYNOPSIS\n.B %s\n.I command\n[flags]", text(root.Name()))
	p.line(".SH DESCRIPTION")
	p.literal(root.Long)
	p.line(".SH COMMANDS")
	p.commands(root)
	p.line(".SH OPTIONS\nEvery command takes these.")
	p.flags(root.PersistentFlags().FlagUsages())
	p.line(`.SH EXIT STATUS
.TP
.B 0
It worked.
.TP
.B 1
It was tried and failed.
.TP
.B 2
The command was called wrongly.
.TP
.B 3
It was refused: a signature, a rule, an admission.
.TP
.B 4
Only a part of a declaration was applied.
.TP
.B 5
A plan found something to do.`)
	_, err := io.WriteString(w, p.out.String())
	return err
}

type page struct{ out strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// literal writes text with its own line breaks.
func (p *page) literal(s string) {
	p.line(".nf")
	for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		p.line("%s", text(line))
	}
	p.line(".fi")
}

func (p *page) commands(c *cobra.Command) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		if sub.HasAvailableSubCommands() {
			p.commands(sub)
			continue
		}
		p.line(".SS %s", text(sub.UseLine()))
		long := sub.Long
		if long == "" {
			long = sub.Short + "."
		}
		p.literal(long)
		p.flags(sub.NonInheritedFlags().FlagUsages())
		if sub.Example != "" {
			p.line(".PP\nFor example:")
			p.literal(sub.Example)
		}
	}
}

// flags writes what cobra prints of flags, in two columns.
func (p *page) flags(usages string) {
	if usages != "" {
		p.line(".PP")
		p.literal(usages)
	}
}

// text spells s so that troff shows exactly s: no escapes, no requests, and a
// hyphen that can be copied into a shell.
func text(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
