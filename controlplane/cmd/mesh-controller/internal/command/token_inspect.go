package command

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// tokenFacts is the public part of a token.
type tokenFacts struct {
	ID        string    `json:"id"`
	Mesh      string    `json:"mesh"`
	Addresses []string  `json:"addresses"`
	Pins      []string  `json:"pins"`
	Expires   time.Time `json:"expires"`
	Name      string    `json:"name,omitempty"`
}

func (a *app) tokenInspect() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "inspect [-]",
		Short: "Say what a token says, without asking anybody",
		Long: `Read a token from standard input, or from --token-file, and print its public
part. The secret is never printed, and nobody is asked: whether the token is still
good is the control plane's to say ("mesh-controller token list").`,
		Example: `  mesh-controller token inspect < token
  mesh-controller token inspect --token-file token --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 1 && args[0] == "-" {
				return nil
			}
			return fault.Usagef("cannot take a token as an argument: everybody on this machine could read it").
				Hint("give it on standard input, or by --token-file")
		},
		RunE: func(c *cobra.Command, _ []string) error {
			in := input.Interruptible(c.Context(), a.std.In)
			if file != "" {
				f, err := openSecret("the token", file)
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			t, err := link.ReadToken(in)
			if err != nil {
				return err
			}
			facts := tokenFacts{t.ID, t.Mesh, t.Addresses, t.Pins, t.Expires, t.Name}
			if a.json {
				return cli.JSON(a.std.Out, facts)
			}
			return a.table([]string{"TOKEN", facts.ID}, [][]string{
				{"mesh", facts.Mesh},
				{"addresses", strings.Join(facts.Addresses, ", ")},
				{"mesh root", strings.Join(facts.Pins, ", ")},
				{"expires", facts.Expires.Format(time.RFC3339)},
				{"name", facts.Name},
			})
		},
	}
	c.Flags().StringVar(&file, "token-file", "", "read the token from `FILE` (regular, its owner's alone)")
	return c
}

// openSecret opens a file that holds a secret, which what names: a regular one that only its
// owner, who is the caller, may read.
func openSecret(what, path string) (io.ReadCloser, error) {
	// Not blocking: a fifo is to be refused, not waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fault.Failedf("cannot read %s: %w", what, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, fault.Failedf("cannot read %s: %w", what, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o077 != 0 || st.Uid != uint32(os.Geteuid()) {
		f.Close()
		return nil, fault.Refusedf("cannot use %s in %q: it is not a regular file that is yours alone", what, path).
			Hint("run `chmod 0600 %s`", fault.Word(path))
	}
	return f, nil
}
