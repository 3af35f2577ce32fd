package cli

import "github.com/spf13/cobra"

// completions gives the commands that cobra adds for the shells the example that
// every command has.
func completions(root *cobra.Command) {
	keep := map[string]string{
		"bash": " > /usr/share/bash-completion/completions/" + root.Name(),
		"zsh":  " > /usr/share/zsh/site-functions/_" + root.Name(),
		"fish": " > /usr/share/fish/vendor_completions.d/" + root.Name() + ".fish",
	}
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Example = "  " + root.Name() + " help completion bash"
		case "completion":
			c.Example = "  source <(" + root.Name() + " completion bash)"
			// One that runs is told of a shell that is not there.
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
			for _, shell := range c.Commands() {
				if shell.Name() == "powershell" { // which no machine of ours has
					c.RemoveCommand(shell)
					continue
				}
				shell.Example = "  " + shell.CommandPath() + keep[shell.Name()]
			}
		}
	}
}
