package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/backup"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/restore"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/internal/passphrase"
	"github.com/nox-mesh/nox-mesh/internal/progress"
)

// restored is what became of a backup.
type restored struct {
	Mesh  string    `json:"mesh"`
	Pin   string    `json:"pin"`
	Made  time.Time `json:"made"`
	By    string    `json:"by"`
	Was   uint64    `json:"backup_epoch"`
	Nodes []string  `json:"nodes"`
	// Modules and Addresses are the backup's.
	Modules   []string `json:"modules"`
	Addresses []string `json:"addresses"`
	Blobs     int      `json:"blobs"`
	Bytes     int64    `json:"bytes"`
	// Lost are nodes that are there now and not in the backup.
	Lost []string `json:"lost,omitempty"`
	// Revived are nodes that are revoked now, and in the backup are not.
	Revived []string `json:"revived,omitempty"`
	// Lacking are the modules whose content has to be pushed again.
	Lacking []string `json:"lacking,omitempty"`
	// Config is the controller.toml that the backup has; it is not put in place.
	Config string `json:"config,omitempty"`
	// Checked: nothing was changed. Else Epoch is the one that begins, Former where
	// what was there is, and TakenUp that the control plane serves it already.
	Checked bool   `json:"checked"`
	Epoch   uint64 `json:"epoch,omitempty"`
	Former  string `json:"former,omitempty"`
	TakenUp bool   `json:"taken_up"`
}

// A restoring is one restore.
type restoring struct {
	*app
	opts                         restore.Options
	identityFile, passphraseFile string
}

func (a *app) restore() *cobra.Command {
	r := &restoring{app: a}
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Bring the control plane back from a backup",
		Long: `Bring the control plane back from the backup in FILE ("-" is standard input), on
the same machine or on a fresh one, which has a control plane already that was
raised from a bundle. Every node that was enrolled when the backup was made connects
again by itself, without being touched, if it finds the control plane at an address
it knows. The epoch is raised, so that what is declared from now on comes after
everything that was declared before.

All of the backup is read and checked before anything is changed, and --dry-run
leaves it at that and prints what is in it. What is there is set aside, never
removed. A mesh that is in order is replaced only with --replace. Nodes that were
enrolled after the backup come as orphans: "mesh-controller approve NODE" takes one
back. /etc/nox-mesh/controller.toml is not written.`,
		Example: `  mesh-controller restore mesh.age --dry-run
  mesh-controller restore mesh.age
  mesh-controller restore mesh.age --identity key.txt --address 192.0.2.7:7443`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			out, err := r.run(c.Context(), args[0])
			if err != nil {
				return fmt.Errorf("cannot restore %q: %w", args[0], cause(err))
			}
			if a.json {
				return cli.JSON(a.std.Out, out)
			}
			return r.print(out)
		},
	}
	f := c.Flags()
	f.StringVar(&r.passphraseFile, "passphrase-file", "", "read the passphrase from `FILE` (\"-\" is standard input)")
	f.StringVar(&r.identityFile, "identity", "", "open it with the secret key in `FILE`, as age-keygen made it")
	f.StringArrayVar(&r.opts.Addresses, "address", nil, "where nodes find the control plane from now on, `HOST:PORT`, instead of the addresses in the backup (may be repeated)")
	f.BoolVar(&r.opts.Replace, "replace", false, "take the place of a mesh that is in order")
	f.BoolVar(&r.opts.Check, "dry-run", false, "read and check all of it, and change nothing")
	return c
}

func (r *restoring) run(ctx context.Context, name string) (out restored, err error) {
	l, err := layout.New(r.root)
	if err != nil {
		return out, err
	}
	if err := link.CheckAddresses(r.opts.Addresses); len(r.opts.Addresses) > 0 && err != nil {
		return out, fault.Usagef("cannot use the addresses: %w", err)
	}
	// Everything of the caller's is opened by the caller.
	in, done, err := input.Open(ctx, name, r.std.In)
	if err != nil {
		return out, err
	}
	defer done()
	lock, err := r.lock(ctx, name)
	if err != nil {
		return out, err
	}
	if err := become(l, r.opts.Check); err != nil {
		return out, err
	}
	cl, err := r.client()
	if err != nil {
		return out, err
	}
	serves := cl.Greet(ctx) == nil
	r.opts.Layout, r.opts.Now = l, clock.System.Now().UTC()
	if serves {
		r.opts.There, err = there(ctx, cl)
	} else {
		r.opts.There, err = restore.Look(l)
	}
	if err != nil {
		return out, err
	}
	s, err := r.stage(ctx, lock, in, name)
	if err != nil {
		return out, err
	}
	out = said(s)
	if s.Order != nil {
		out.Epoch, out.Former = s.Order.Epoch, filepath.Join(l.ControllerState(), s.Order.Former)
		if serves {
			return out, takeUp(ctx, cl, s.Order, r.wait, &out.TakenUp)
		}
	}
	return out, nil
}

// lock is what opens the backup.
func (r *restoring) lock(ctx context.Context, name string) (backup.Lock, error) {
	if r.identityFile != "" {
		f, err := openSecret("the identity", r.identityFile)
		if err != nil {
			return backup.Lock{}, err
		}
		defer f.Close()
		return backup.Identities(f)
	}
	if name == "-" && (r.passphraseFile == "-" || r.passphraseFile == "" && os.Getenv("NOX_PASSPHRASE_FILE") == "-") {
		return backup.Lock{}, fault.Usagef("backup and passphrase cannot both be on standard input").Hint("give --passphrase-file FILE")
	}
	secret, err := passphrase.Read(ctx, passphrase.Source{File: r.passphraseFile, In: r.std.In}, false)
	if err != nil {
		return backup.Lock{}, err
	}
	defer clear(secret)
	return backup.Passphrase(secret)
}

func (r *restoring) stage(ctx context.Context, lock backup.Lock, in io.Reader, name string) (restore.Staged, error) {
	show := progress.New(r.std.Err, progress.Options{JSON: r.json, Quiet: r.quiet})
	defer show.Close()
	title, size := "standard input", int64(0)
	if name != "-" {
		title = filepath.Base(name)
		if fi, err := os.Stat(name); err == nil && fi.Mode().IsRegular() {
			size = fi.Size()
		}
	}
	show.Begin("reading", title)
	open, err := lock.Open(show.Reader(in, title, size))
	if err != nil {
		return restore.Staged{}, err
	}
	return restore.Stage(ctx, open, r.opts)
}

// there is what a control plane that runs says of itself.
func there(ctx context.Context, cl *admin.Client) (t restore.There, err error) {
	s, err := admin.GetStatus.Ask(ctx, cl, admin.None{})
	if err != nil {
		return t, err
	}
	t.Mesh, t.Epoch = s.Mesh, s.Epoch
	nodes, err := admin.Nodes.Ask(ctx, cl, admin.None{})
	for _, n := range nodes {
		if n.State != admin.Orphan {
			t.Nodes = append(t.Nodes, backup.Node{ID: n.ID, Name: n.Name, State: n.State})
		}
	}
	return t, err
}

// takeUp has the control plane that runs take it up, and waits until it serves that.
func takeUp(ctx context.Context, cl *admin.Client, o *restore.Order, wait time.Duration, done *bool) error {
	const drain = 15 * time.Second // its links end first
	limit, cancel := context.WithTimeout(ctx, wait+drain)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	if _, err := admin.TakeUp.Ask(limit, cl, admin.None{}); err != nil {
		return err
	}
	for {
		s, err := admin.GetStatus.Ask(limit, cl, admin.None{})
		if err == nil && s.Restored != nil && s.Epoch == o.Epoch && s.Restored.At.Equal(o.At) {
			*done = true
			return nil
		}
		select {
		case <-limit.Done():
			return fault.Failedf("it is laid down, and the control plane does not serve it after %s", cli.Span(wait+drain)).
				Hint("see `mesh-host status`: at its next start it takes it up")
		case <-tick.C:
		}
	}
}

func said(s restore.Staged) restored {
	blobs, bytes := s.Content()
	out := restored{
		Mesh: s.Mesh, Pin: s.Pin, Made: s.Made, By: s.By, Was: s.Manifest.Epoch, Nodes: namesOf(s.Nodes), Modules: s.Modules,
		Addresses: s.Addresses, Blobs: blobs, Bytes: bytes, Lost: namesOf(s.Lost), Revived: namesOf(s.Revived), Lacking: s.Lacking, Config: s.Config,
		Checked: s.Order == nil,
	}
	return out
}

func namesOf(ns []backup.Node) []string {
	out := []string{}
	for _, n := range ns {
		name := n.Name
		if name == "" {
			name = n.ID
		}
		out = append(out, name)
	}
	return out
}

func (r *restoring) print(o restored) error {
	if o.Checked {
		return r.printContents(o)
	}
	what := "it is taken up when the control plane starts"
	if o.TakenUp {
		what = "the control plane serves it"
	}
	r.say("mesh %q is restored from the backup of %s: epoch %d, %s, %s; %s", o.Mesh, o.Made.UTC().Format(time.RFC3339), o.Epoch,
		cli.Count(len(o.Nodes), "node", "nodes"), cli.Count(len(o.Modules), "module", "modules"), what)
	if len(o.Lost) > 0 {
		r.say("the backup does not know %s: they come as orphans, and `mesh-controller approve NODE` takes one back", strings.Join(o.Lost, ", "))
	}
	if len(o.Revived) > 0 {
		r.say("they were revoked after the backup, and are nodes again: %s; `mesh-controller revoke NODE` takes that back", strings.Join(o.Revived, ", "))
	}
	if len(o.Lacking) > 0 {
		r.say("their content has to be pushed again: %s", strings.Join(o.Lacking, ", "))
	}
	if here, err := os.ReadFile(r.opts.Layout.ControllerConfig()); o.Config != "" && (err != nil || string(here) != o.Config) {
		r.say("its controller.toml is another than this machine's, and is not put in place: --dry-run prints it")
	}
	r.say("what was here is in %q", o.Former)
	return nil
}

// printContents prints what is in a backup.
func (r *restoring) printContents(o restored) error {
	content := cli.Count(o.Blobs, "blob", "blobs") + ", " + progress.Bytes(o.Bytes)
	err := r.table([]string{"MESH", o.Mesh}, [][]string{
		{"made", o.Made.UTC().Format(time.RFC3339) + ", by mesh-controller " + o.By},
		{"epoch", fmt.Sprint(o.Was)},
		{"mesh root", o.Pin},
		{"addresses", strings.Join(o.Addresses, ", ")},
		{"nodes", fmt.Sprintf("%d: %s", len(o.Nodes), few(o.Nodes))},
		{"modules", fmt.Sprintf("%d: %s", len(o.Modules), few(o.Modules))},
		{"content", content},
		{"not in it", few(o.Lost)},
		{"revoked since", few(o.Revived)},
	})
	if err == nil && o.Config != "" {
		fmt.Fprintf(r.std.Out, "\ncontroller.toml:\n%s\n", cli.Lines(strings.TrimSpace(o.Config)))
	}
	return err
}

// few is a list that fits a line.
func few(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
