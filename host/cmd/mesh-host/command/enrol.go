package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/secret"
)

// maxToken bounds the text of a token, in bytes.
const maxToken = 64 << 10

func (p *program) enrol() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "enrol -",
		Short: "Make this machine a node of a mesh, with a token",
		Long: `Make this machine a node of the mesh that a token carries.

The token is read from standard input (-) or from a file of root's that nobody
else can read (--token-file). It is never an argument: arguments show in ps and
stay in the shell's history.

A machine that already is a node of this mesh stays the node it is; the token
is not used.`,
		Example: "  mesh-controller token create | mesh-host enrol -\n  mesh-host enrol -            # and paste the token\n  mesh-host enrol --token-file /root/token",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			token, err := p.token(c.Context(), args, file)
			if err != nil {
				return err
			}
			return p.ask(c.Context(), func(h service.Host) error {
				e, err := h.Enrol(c.Context(), token)
				if err != nil {
					return fmt.Errorf("cannot enrol: %w", err)
				}
				if file != "" && !e.Already && !e.Pending {
					if err := durable.Remove(file); err != nil {
						fmt.Fprintf(p.std.Err, "the token file stays: %v\n", err)
					}
				}
				return p.print(e, func() error { return p.printEnrolled(e) })
			})
		},
	}
	c.Flags().StringVar(&file, "token-file", "", "read the token from this `FILE`, which is removed once the machine is enrolled with it")
	return c
}

func (p *program) printEnrolled(e service.Enrolled) error {
	if p.quiet {
		return nil
	}
	switch {
	case e.Pending && e.Asking:
		fmt.Fprintf(p.std.Out, "pending: a person has to admit this machine (mesh-controller approve); it becomes a node by itself then\n")
	case e.Pending:
		fmt.Fprintf(p.std.Out, "pending: a person has to admit this machine (mesh-controller approve); enrol again with the same token then\n")
	case e.Already:
		fmt.Fprintf(p.std.Out, "already enrolled as %s (%s) of mesh %s; the token was not used\n", e.Node, e.NodeID, e.Mesh)
	case e.Declared:
		fmt.Fprintf(p.std.Out, "enrolled as %s (%s) of mesh %s; its declaration comes from the mesh now\n", e.Node, e.NodeID, e.Mesh)
	default:
		fmt.Fprintf(p.std.Out, "enrolled as %s (%s) of mesh %s; its declaration is still to come: see mesh-host status\n", e.Node, e.NodeID, e.Mesh)
	}
	return nil
}

// token reads the token from where it may come from, and from nowhere else.
func (p *program) token(ctx context.Context, args []string, file string) (string, error) {
	hint := "pipe it (mesh-controller token create | mesh-host enrol -) or name a file: --token-file FILE"
	for _, v := range os.Environ() {
		if strings.Contains(v, "noxt1.") {
			name, _, _ := strings.Cut(v, "=")
			return "", fault.Usagef("a token is in the environment, as %q, where other programs can read it", name).Hint("%s", hint)
		}
	}
	switch {
	case len(args) == 1 && args[0] != "-":
		// The argument is not repeated: it may be the token.
		return "", fault.Usagef("a token is never an argument: it would show in ps").Hint("%s", hint)
	case len(args) == 1 && file != "":
		return "", fault.Usagef("the token comes from standard input or from a file, not both")
	case file != "":
		return tokenFile(file)
	case len(args) == 0:
		return "", fault.Usagef("cannot enrol: no token was given").Hint("%s", hint)
	}
	if in, ok := p.std.In.(*os.File); ok && secret.IsTerminal(in) {
		return typedToken(ctx, in, p.std.Err)
	}
	return readToken(input.Interruptible(ctx, p.std.In))
}

func tokenFile(name string) (string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return "", fault.Refusedf("cannot read token file %q: it is a symlink", name)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read token file: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("cannot read token file: %w", err)
	}
	st := fi.Sys().(*syscall.Stat_t)
	switch {
	case !fi.Mode().IsRegular():
		return "", fault.Refusedf("cannot read token file %q: it is no regular file", name)
	case int(st.Uid) != os.Geteuid() && st.Uid != 0:
		return "", fault.Refusedf("cannot read token file %q: it belongs to user %d", name, st.Uid)
	case fi.Mode().Perm()&0o077 != 0:
		return "", fault.Refusedf("cannot read token file %q: others may read it (mode %04o)", name, fi.Mode().Perm()&fs.ModePerm).Hint("chmod 600 %s, and take another token if it was seen", fault.Word(name))
	}
	return readToken(f)
}

func readToken(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	if len(b) > maxToken {
		return "", fault.Refusedf("cannot read the token: what came is longer than any token")
	}
	if strings.TrimSpace(string(b)) == "" {
		return "", fault.Refusedf("cannot enrol: no token came on standard input").Hint("did the command before the pipe fail?")
	}
	return string(b), nil
}
