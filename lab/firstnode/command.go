package firstnode

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Command is the program mesh-lab.
func Command(ctx context.Context, args []string, std cli.Stdio) error {
	node := &Node{Std: std, Clock: clock.System}
	var dir string
	understood := false
	root := &cobra.Command{
		Use:           "mesh-lab",
		Short:         "Raise a first node from this source, without root, and take it away again",
		Example:       "  mesh-lab up\n  mesh-lab status\n  mesh-lab down",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			understood = true
			return node.place(dir)
		},
	}
	root.PersistentFlags().StringVar(&dir, "dir", "", "the `folder` the node is in (default ~/.local/state/nox-mesh-lab, for root /var/lib/nox-mesh-lab)")
	up := &cobra.Command{
		Use:     "up",
		Short:   "Make a release with throwaway keys and a first node of it, and leave that running",
		Example: "  mesh-lab up --dir /tmp/node\n  mesh-lab up --from dist",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if node.From != "" {
				if node.From, err = filepath.Abs(node.From); err != nil {
					return err
				}
			}
			return node.Up(c.Context())
		},
	}
	up.Flags().StringVar(&node.From, "from", "", "raise the node from the release in this `folder` instead of making one")
	root.AddCommand(up,
		&cobra.Command{
			Use:     "status",
			Short:   "Show what runs, and what the host and the control plane say",
			Example: "  mesh-lab status",
			Args:    cobra.NoArgs,
			RunE:    func(c *cobra.Command, _ []string) error { return node.Status(c.Context()) },
		},
		&cobra.Command{
			Use:     "down",
			Short:   "End everything of the node and remove its folder",
			Example: "  mesh-lab down",
			Args:    cobra.NoArgs,
			RunE:    func(*cobra.Command, []string) error { return node.Down() },
		},
	)
	root.SetArgs(args)
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	err := root.ExecuteContext(ctx)
	if err != nil && !understood {
		return fault.Usagef("%w", err).Hint("see mesh-lab --help")
	}
	return err
}

// place decides where the node is, and how it is ended.
func (n *Node) place(dir string) error {
	var err error
	if dir == "" {
		n.DownCommand = "make first-node-down"
		n.Dir, err = DefaultDir()
	} else if n.Dir, err = filepath.Abs(dir); err == nil {
		n.DownCommand = "go run ./lab/cmd/mesh-lab down --dir " + n.Dir
	}
	n.resolve()
	return err
}
