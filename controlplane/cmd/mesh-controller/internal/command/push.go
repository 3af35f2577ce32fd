package command

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/progress"
)

func (a *app) push() *cobra.Command {
	var q admin.Push
	c := &cobra.Command{
		Use:   "push BUNDLE",
		Short: "Bring a signed bundle to the control plane",
		Long: `Bring the signed bundle in the file BUNDLE ("-" is standard input) to the control
plane: its content, and its declaration as a module of the bundle's name. --on says
where that shall be present, as "declare" has it; without it a name that is known
stays where it is, and a new one is nowhere. A node has the bundle of its own
architecture. "status" lists what was pushed and where it is.

The control plane itself is upgraded so: push the release's bundle with --on for the
node that runs it.

A newer bundle of the first node's brings newer packages and a newer tarball, which
machines that join from here are served from then on ("mesh-controller join").

The signature is verified against the release root that this control plane trusts
before a byte is written. A bundle takes the place of the one of its name for the
same architecture; one that is older is refused. Pushing the same again changes
nothing.`,
		Example: `  mesh-controller push web-1.2.0-linux-x86_64.bundle.tar --on tag=web
  mesh-controller push web-1.2.1-linux-x86_64.bundle.tar
  curl -fsSL https://releases.example/web.bundle.tar | mesh-controller push -`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, path := range []*string{&q.Trust, &q.Key} {
				if *path == "" {
					continue
				}
				// The service does not stand where the command was given.
				abs, err := filepath.Abs(*path)
				if err != nil {
					return err
				}
				*path = abs
			}
			p, err := a.pushed(c, q, args[0])
			if err != nil {
				return fmt.Errorf("cannot push %q: %w", args[0], err)
			}
			if a.json {
				return cli.JSON(a.std.Out, p)
			}
			defer a.sayPublished(p)
			if !p.Changed {
				a.say("bundle %q %s (counter %d, %s) was pushed already: nothing changes", p.Name, p.Version, p.Counter, p.Architecture)
				return nil
			}
			where := "it is placed nowhere yet: say --on"
			if len(p.Placement) > 0 {
				where = "it is on " + cli.Count(p.Present, "node", "nodes")
			}
			a.say("bundle %q %s (counter %d, %s) is pushed, signed by %s; %s",
				p.Name, p.Version, p.Counter, p.Architecture, signers(p.Signers), where)
			return nil
		},
	}
	f := c.Flags()
	f.BoolVar(&q.AllowRollback, "allow-rollback", false, "take a bundle that is older than the one that was pushed")
	f.StringArrayVar(&q.Placement, "on", nil, "where the module is present: `RULE` (every, node=N, tag=T, profile.KEY=V; may be repeated)")
	lastFlag(c, &q.Last)
	f.StringVar(&q.Trust, "trust", "", "trust the roots and keys in this `DIR` instead of the control plane's")
	f.StringVar(&q.Key, "key", "", "trust the public key in this `FILE` as well")
	return c
}

// sayPublished says what became of what a bundle brings for new machines.
func (a *app) sayPublished(p admin.Pushed) {
	switch {
	case p.Published:
		a.say("new machines are served release %s for %s from now on", p.Version, p.Architecture)
	case p.NotPublished != "":
		a.say("new machines are not served release %s: %s", p.Version, p.NotPublished)
	}
}

func (a *app) pushed(c *cobra.Command, q admin.Push, name string) (admin.Pushed, error) {
	in, done, err := input.Open(c.Context(), name, a.std.In)
	if err != nil {
		return admin.Pushed{}, err
	}
	defer done()
	title, size := "standard input", int64(0)
	if name != "-" {
		fi, err := os.Stat(name)
		if err != nil {
			return admin.Pushed{}, cause(err)
		}
		if fi.IsDir() {
			return admin.Pushed{}, fault.Refusedf("it is a directory")
		}
		title = filepath.Base(name)
		if fi.Mode().IsRegular() {
			size = fi.Size()
		}
	}
	cl, err := a.client()
	if err != nil {
		return admin.Pushed{}, err
	}
	show := progress.New(a.std.Err, progress.Options{JSON: a.json, Quiet: a.quiet})
	defer show.Close()
	show.Begin("pushing", title)
	p, err := admin.SendBundle(c.Context(), cl, q, show.Reader(in, title, size))
	return p, cause(err)
}

// cause leaves out the path, which is said already.
func cause(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}

// signers names the keys that signed, as mesh-host does.
func signers(keys []string) string {
	var out []string
	for _, k := range keys {
		out = append(out, fmt.Sprintf("key %.12s", k))
	}
	return strings.Join(out, ", ")
}
