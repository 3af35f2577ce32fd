package command

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/progress"
)

func (p *program) bootstrap() *cobra.Command {
	var o service.Override
	var rollback bool
	c := &cobra.Command{
		Use:   "bootstrap BUNDLE",
		Short: "Apply a signed bundle from disk: raise the control plane of a mesh that does not exist yet",
		Long: `Apply the declaration of a signed bundle, with the content the bundle carries.
Nothing else is needed: no network, no repository, no control plane.

The signature is verified against the release root this machine trusts before
a byte is written. Giving the same bundle twice changes nothing. BUNDLE may be
"-" for standard input.

How far it is stands on standard error: a line that is drawn in place on a
terminal, a few lines elsewhere, one event of JSON a line with --json, nothing
with --quiet.`,
		Example: "  mesh-host bootstrap nox-mesh-1.0.0-linux-x86_64.bundle.tar\n  mesh-controller token create | mesh-host enrol -",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			override, err := absolute(o)
			if err != nil {
				return err
			}
			return p.ask(c.Context(), func(h service.Host) error {
				err := p.bootstrapFrom(c.Context(), h, args[0], override, rollback)
				switch {
				case err == nil:
					return nil
				case args[0] == "-" && service.Gone(err):
					// What came by the pipe is gone with it.
					return fault.Failedf("cannot bootstrap: %v", err).Hint("give the bundle again: what arrived is not fetched twice")
				}
				return fmt.Errorf("cannot bootstrap from %q: %w", args[0], err)
			})
		},
	}
	trustFlags(c, &o)
	c.Flags().BoolVar(&rollback, "allow-rollback", false, "take a bundle that is older than what was applied")
	return c
}

func trustFlags(c *cobra.Command, o *service.Override) {
	c.Flags().StringVar(&o.Dir, "trust", "", "trust the roots and keys in this `DIR` instead of the machine's")
	c.Flags().StringVar(&o.Key, "key", "", "trust the public key in this `FILE` as well")
}

// absolute makes the paths mean the same in the service as here.
func absolute(o service.Override) (service.Override, error) {
	for _, s := range []*string{&o.Dir, &o.Key} {
		if *s == "" {
			continue
		}
		abs, err := filepath.Abs(*s)
		if err != nil {
			return o, err
		}
		*s = abs
	}
	return o, nil
}

func (p *program) bootstrapFrom(ctx context.Context, h service.Host, name string, o service.Override, rollback bool) error {
	st, err := h.Status(ctx)
	if err != nil {
		return err
	}
	if st.Mesh != "" {
		return fault.Refusedf("this machine is a node of mesh %q, which alone declares what it has", st.Mesh)
	}
	l, err := p.layout()
	if err != nil {
		return err
	}
	known, err := trust.ReadState(l.TrustState())
	if err != nil {
		return err
	}
	policy, err := service.Policy(l, o)
	if err != nil {
		return err
	}
	in, closeIn, err := p.open(ctx, name)
	if err != nil {
		return err
	}
	defer closeIn()

	store, err := content.Open(l.Content())
	if err != nil {
		return err
	}
	// What is read, or found there, stays until its declaration is in force.
	lease, err := store.Lease()
	if err != nil {
		return err
	}
	defer lease.Release()

	started := clock.System.Now()
	show, shown := p.reading(name)
	info, err := bundle.Read(ctx, in, bundle.Options{
		Store:    store,
		Policy:   policy,
		Admit:    func(i *bundle.Info) error { return service.Admit(i, known.Counters[i.Name], rollback) },
		Progress: show,
	})
	shown()
	if err != nil {
		return err
	}
	p.say("verified %s %s (counter %d), signed by %s, in %s", info.Name, info.Version, info.Counter, signedBy(info.Signers), since(started))
	started = clock.System.Now()
	report, err := h.Bundle(ctx, service.BundleRequest{Digest: info.Digest, Override: o, AllowRollback: rollback})
	if err != nil {
		return err
	}
	if err := p.reported(report); err != nil {
		return err
	}
	p.say("applied in %s", since(started))
	return nil
}

// reading shows how far the reading of the bundle in name is, until shown is
// called.
func (p *program) reading(name string) (show func(bundle.Progress), shown func()) {
	r := progress.New(p.std.Err, progress.Options{JSON: p.json, Quiet: p.quiet})
	if name == "-" {
		name = "standard input"
	}
	r.Begin("reading", filepath.Base(name))
	return func(at bundle.Progress) {
		r.At(progress.At{Title: at.Title, Done: at.Done, Total: at.Total, Here: at.Here})
	}, r.Close
}

// open opens a file to read, or standard input for "-"; waiting for either ends
// with ctx.
func (p *program) open(ctx context.Context, name string) (io.Reader, func(), error) {
	return input.Open(ctx, name, p.std.In)
}

// say tells a person what was done, on standard error.
func (p *program) say(format string, args ...any) {
	if !p.quiet && !p.json {
		fmt.Fprintf(p.std.Err, format+"\n", args...)
	}
}

func since(t time.Time) string {
	return fmt.Sprintf("%.2f s", clock.System.Now().Sub(t).Seconds())
}
