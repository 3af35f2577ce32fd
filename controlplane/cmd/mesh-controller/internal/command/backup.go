package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/backup"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/passphrase"
	"github.com/nox-mesh/nox-mesh/internal/progress"
)

// backedUp is what was written.
type backedUp struct {
	File string `json:"file"`
	// Bytes and SHA256 are the file's, as it was written.
	Bytes   int64     `json:"bytes"`
	SHA256  string    `json:"sha256"`
	Made    time.Time `json:"made"`
	Mesh    string    `json:"mesh"`
	Epoch   uint64    `json:"epoch"`
	Nodes   int       `json:"nodes"`
	Modules int       `json:"modules"`
	Blobs   int       `json:"blobs"`
	// Checked is "decrypted", "read back" or, for standard output, "written".
	Checked string `json:"checked"`
}

// A backing is one backup that is made.
type backing struct {
	*app
	q              admin.Backup
	recipients     []string
	passphraseFile string
	show           *progress.Reporter
}

func (a *app) backup() *cobra.Command {
	b := &backing{app: a}
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write down everything the control plane can be restored from",
		Long: `Write everything a restore needs into FILE ("-" is standard output), encrypted
(age): the state with the key of the mesh, what was remembered of releases, and the
content that modules name. The control plane goes on serving, and the backup is of
one moment.

It is encrypted to a passphrase, which is asked for at the terminal or read from
--passphrase-file (or the file that NOX_PASSPHRASE_FILE names), or to each
--recipient, a public key that age-keygen made. Without the one or the other nobody
can open the file: keep it elsewhere than on this machine, and not beside the file.

FILE gets its name when it is whole and was read back.`,
		Example: `  mesh-controller backup /mnt/backup/mesh.age
  mesh-controller backup - --recipient age1… | ssh store 'cat > mesh.age'
  mesh-controller backup mesh.age --passphrase-file /root/passphrase --without-content`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			done, err := b.run(c.Context(), args[0])
			if err != nil {
				return fmt.Errorf("cannot back up to %q: %w", args[0], cause(err))
			}
			if args[0] == "-" {
				return nil // that is the backup's
			}
			if a.json {
				return cli.JSON(a.std.Out, done)
			}
			a.say("mesh %q is backed up: epoch %d, %s, %s, %s; %s, and %s", done.Mesh, done.Epoch,
				cli.Count(done.Nodes, "node", "nodes"), cli.Count(done.Modules, "module", "modules"), cli.Count(done.Blobs, "blob", "blobs"),
				progress.Bytes(done.Bytes), done.Checked+" to check it")
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&b.passphraseFile, "passphrase-file", "", "read the passphrase from `FILE` (\"-\" is standard input)")
	f.StringArrayVar(&b.recipients, "recipient", nil, "encrypt to the public `KEY` of age instead (may be repeated)")
	f.BoolVar(&b.q.WithoutContent, "without-content", false, "leave content out: after a restore its bundles have to be pushed again")
	return c
}

func (b *backing) run(ctx context.Context, name string) (backedUp, error) {
	if name == "-" && b.std.ToTerminal() {
		return backedUp{}, fault.Usagef("standard output is a terminal").Hint("name a file, or pipe it somewhere")
	}
	lock, err := b.lock(ctx)
	if err != nil {
		return backedUp{}, err
	}
	b.show = progress.New(b.std.Err, progress.Options{JSON: b.json, Quiet: b.quiet})
	defer b.show.Close()
	if name == "-" {
		return b.write(ctx, lock, b.std.Out, "written")
	}
	switch fi, err := os.Lstat(name); {
	case err == nil && fi.IsDir():
		return backedUp{}, fault.Usagef("it is a directory").Hint("name a file in it")
	case err == nil && !fi.Mode().IsRegular():
		return backedUp{}, fault.Refusedf("it is there and no regular file, and a backup takes the place of nothing else").
			Hint("name a file, or write to it: mesh-controller backup - > %s", fault.Word(name))
	}
	dir, err := durable.OpenDir(filepath.Dir(name))
	if err != nil {
		return backedUp{}, err
	}
	defer dir.Close()
	file, err := dir.Create(filepath.Base(name), durable.Perm(0o600))
	if err != nil {
		return backedUp{}, err
	}
	defer file.Abort()
	how := "read back"
	if lock.Opens() {
		how = "decrypted"
	}
	done, err := b.write(ctx, lock, file, how)
	if err != nil {
		return done, err
	}
	done.File = name
	if err := b.readBack(file, lock, done); err != nil {
		return done, err
	}
	return done, file.Commit()
}

// lock asks for the passphrase, unless there are recipients.
func (b *backing) lock(ctx context.Context) (backup.Lock, error) {
	if len(b.recipients) > 0 {
		if b.passphraseFile != "" {
			return backup.Lock{}, fault.Usagef("there are a passphrase and a recipient").Hint("give one of --passphrase-file and --recipient")
		}
		return backup.Recipients(b.recipients)
	}
	secret, err := passphrase.Read(ctx, passphrase.Source{File: b.passphraseFile, In: b.std.In}, true)
	if err != nil {
		return backup.Lock{}, err
	}
	defer clear(secret)
	return backup.Passphrase(secret)
}

// write closes what the control plane sends into w, and reads it at the same time:
// what it is is known to be whole before it is closed.
func (b *backing) write(ctx context.Context, lock backup.Lock, w io.Writer, checked string) (done backedUp, err error) {
	out := &counted{w: w, sum: sha256.New()}
	sealed, err := lock.Seal(out)
	if err != nil {
		return done, err
	}
	b.show.Begin("backing up", "the control plane")
	cl, err := b.client()
	if err != nil {
		return done, err
	}
	r, open := io.Pipe()
	drawn := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		err := admin.DrawBackup(ctx, cl, b.q, io.MultiWriter(sealed, open))
		open.CloseWithError(err) // nil ends it as a file ends
		drawn <- err
	}()
	var total int64
	m, err := backup.Read(&shown{r: r, show: b.show, total: &total}, func(m *backup.Manifest) error {
		total = m.Size()
		return nil
	}, func(backup.File, io.Reader) error { return nil })
	r.CloseWithError(errUnread)
	cancelled := err != nil
	if cancelled {
		cancel()
	}
	if why := <-drawn; why != nil && !errors.Is(why, errUnread) && !(cancelled && errors.Is(why, context.Canceled) && !errors.Is(err, context.Canceled)) {
		return done, why
	}
	if err != nil {
		return done, fault.Failedf("what the control plane sent cannot be used: %w", err)
	}
	if err := sealed.Close(); err != nil {
		return done, err
	}
	blobs, _ := m.Content()
	return backedUp{
		File: "-", Bytes: out.n, SHA256: hex.EncodeToString(out.sum.Sum(nil)), Made: m.Made, Mesh: m.Mesh, Epoch: m.Epoch,
		Nodes: len(m.Nodes), Modules: len(m.Modules), Blobs: blobs, Checked: checked,
	}, nil
}

var errUnread = errors.New("it is not read any more")

// readBack reads what is on the disk: opened where we have what opens it, and else
// as it was written.
func (b *backing) readBack(file *durable.Pending, lock backup.Lock, done backedUp) error {
	if err := unix.Fsync(file.FD()); err != nil {
		return fmt.Errorf("cannot write it: %w", err)
	}
	// From the disk, as far as the kernel can be asked to (posix_fadvise(2)).
	_ = unix.Fadvise(file.FD(), 0, 0, unix.FADV_DONTNEED)
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", file.FD()))
	if err != nil {
		return fmt.Errorf("cannot read it back: %w", err)
	}
	defer f.Close()
	b.show.Begin("checking", "the backup")
	sum := sha256.New()
	in := io.TeeReader(b.show.Reader(f, "the backup", done.Bytes), sum)
	if lock.Opens() {
		open, err := lock.Open(in)
		if err == nil {
			_, err = backup.Read(open, func(*backup.Manifest) error { return nil }, func(backup.File, io.Reader) error { return nil })
		}
		if err != nil {
			return fault.Failedf("what was written cannot be read back: %w", err)
		}
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("cannot read it back: %w", err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != done.SHA256 {
		return fault.Failedf("what was read back is not what was written").Hint("look after the disk, and write it to another")
	}
	return nil
}

// counted counts and sums what is written.
type counted struct {
	w   io.Writer
	sum hash.Hash
	n   int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.sum.Write(p[:n])
	c.n += int64(n)
	return n, err
}

// shown shows how far the reading is, of a total that is known later.
type shown struct {
	r     io.Reader
	show  *progress.Reporter
	done  int64
	total *int64
}

func (s *shown) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.done += int64(n)
	s.show.At(progress.At{Title: "the control plane", Done: min(s.done, *s.total), Total: *s.total})
	return n, err
}
