package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Execute runs the command below root that args name. What cobra finds wrong
// with the call is a fault of kind Usage, in our words and with a remedy; a
// command that says nothing of its arguments takes none.
func Execute(ctx context.Context, root *cobra.Command, args []string, std Stdio) error {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return misused(c, "%s", wrongFlag(err)) })
	// cobra adds these two itself, but only once it runs.
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	completions(root)
	checkArguments(root)
	return root.ExecuteContext(ctx)
}

// misused is a call that cannot be what a person meant.
func misused(c *cobra.Command, format string, args ...any) error {
	return fault.Usagef("cannot run %q: %s", c.CommandPath(), fmt.Sprintf(format, args...)).Hint("see %s --help", c.CommandPath())
}

// checkArguments says in our words what cobra says of arguments and of flags
// that need or exclude each other, for c and all below it.
func checkArguments(c *cobra.Command) {
	check := c.Args
	if check == nil {
		check = cobra.NoArgs
	}
	if c.Name() == "help" && !c.HasSubCommands() {
		check = isCommand
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if c.HasSubCommands() && len(args) > 0 {
			return noCommand(c, args[0])
		}
		if err := check(c, args); err != nil {
			return wrongArguments(c, len(args), err)
		}
		if err := c.ValidateRequiredFlags(); err != nil {
			return misused(c, "%s", wrongGroup(err))
		}
		if err := c.ValidateFlagGroups(); err != nil {
			return misused(c, "%s", wrongGroup(err))
		}
		return nil
	}
	for _, sub := range c.Commands() {
		checkArguments(sub)
	}
}

func noCommand(c *cobra.Command, name string) error {
	hint := "see " + c.CommandPath() + " --help"
	c.SuggestionsMinimumDistance = 2 // a slip or two; 0 suggests nothing
	if near := c.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + c.CommandPath() + " " + near[0] + "?"
	}
	return fault.Usagef("cannot run %q: there is no command %q", c.CommandPath(), name).Hint("%s", hint)
}

// isCommand holds that help is asked for a command that is there.
func isCommand(c *cobra.Command, args []string) error {
	at := c.Root()
	for _, name := range args {
		var next *cobra.Command
		for _, sub := range at.Commands() {
			if sub.Name() == name || sub.HasAlias(name) {
				next = sub
			}
		}
		if next == nil {
			return noCommand(at, name)
		}
		at = next
	}
	return nil
}

// wrongArguments names what the command takes, as its line of usage does. A
// command that looked itself has said it better.
func wrongArguments(c *cobra.Command, given int, err error) error {
	var said *fault.Error
	if errors.As(err, &said) {
		return err
	}
	is := "are given"
	if given == 1 {
		is = "is given"
	}
	_, takes, _ := strings.Cut(c.Use, " ")
	switch {
	case takes == "":
		return misused(c, "it takes no argument, and %s %s", Count(given, "argument", "arguments"), is)
	case given == 0:
		return misused(c, "it takes %s, and no argument is given", takes)
	}
	return misused(c, "it takes %s, and %s %s", takes, Count(given, "argument", "arguments"), is)
}

// wrongFlag is what is wrong with a flag.
func wrongFlag(err error) string {
	var (
		unknown *pflag.NotExistError
		bare    *pflag.ValueRequiredError
		value   *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return fmt.Sprintf("there is no flag -%.1s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		return "there is no flag --" + unknown.GetSpecifiedName()
	case errors.As(err, &bare) && bare.GetSpecifiedShortnames() != "":
		return fmt.Sprintf("-%.1s needs a value", bare.GetSpecifiedName())
	case errors.As(err, &bare):
		return "--" + bare.GetSpecifiedName() + " needs a value"
	case errors.As(err, &value):
		return fmt.Sprintf("%q is not what --%s takes: %s", value.GetValue(), value.GetFlag().Name, wanted(value))
	case errors.As(err, &syntax):
		return fmt.Sprintf("%q is no flag", syntax.GetSpecifiedFlag())
	}
	return err.Error()
}

// wanted is what a flag takes, by its type.
func wanted(e *pflag.InvalidValueError) string {
	if errors.Is(e, strconv.ErrRange) {
		return "it is too large"
	}
	switch of := e.GetFlag().Value.Type(); of {
	case "bool":
		return "true or false"
	case "duration":
		return "a time, as 90s, 15m or 2h"
	case "int", "int64":
		return "a whole number"
	case "uint", "uint64":
		return "a whole number, 0 or more"
	}
	// A type of its own says what it wants.
	return e.Unwrap().Error()
}

var (
	quoted   = regexp.MustCompile(`"([^"]+)"`)
	brackets = regexp.MustCompile(`\[([^\]]*)\]`)
)

// wrongGroup is what is wrong with flags together. cobra has no types for it, so
// it is read from what it says; what it may say one day stays as it is.
func wrongGroup(err error) string {
	said := err.Error()
	if strings.HasPrefix(said, "required flag(s)") {
		var names []string
		for _, m := range quoted.FindAllStringSubmatch(said, -1) {
			names = append(names, m[1])
		}
		return flags(names) + " must be given"
	}
	groups := brackets.FindAllStringSubmatch(said, -1)
	switch {
	case len(groups) == 2 && strings.HasSuffix(said, "were all set"):
		return flags(strings.Fields(groups[1][1])) + " exclude each other"
	case len(groups) == 2 && strings.Contains(said, "must all be set"):
		return flags(strings.Fields(groups[0][1])) + " are given together or not at all"
	case len(groups) == 1 && strings.HasPrefix(said, "at least one"):
		return "one of " + flags(strings.Fields(groups[0][1])) + " must be given"
	}
	return said
}

func flags(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, "--"+n)
	}
	return strings.Join(out, ", ")
}
