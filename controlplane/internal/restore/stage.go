package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/backup"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/internal/progress"
)

// Options say how to restore.
type Options struct {
	Layout layout.Layout
	There  There
	// Replace lets a backup take the place of a mesh that is in order.
	Replace bool
	// Addresses, if any, are where nodes find the control plane from now on.
	Addresses []string
	// Check reads all of the backup and changes nothing.
	Check bool
	Now   time.Time
	// Accepted is called when it is known what is in the backup.
	Accepted func(*backup.Manifest)
}

// A Staged is what became of a backup.
type Staged struct {
	*backup.Manifest
	// Order is nil when the backup was only checked.
	Order *Order
	// Lost are the nodes that are there and that the backup does not know.
	Lost []backup.Node
	// Revived are those that are revoked there, and not in the backup.
	Revived []backup.Node
	// Lacking are the modules whose content has to be pushed again.
	Lacking []string
	// Config is the operator's file as it was.
	Config string
}

// Stage reads an open backup to its end and lays down what a control plane takes up
// at its next start. After an error nothing is laid down.
func Stage(ctx context.Context, r io.Reader, o Options) (s Staged, err error) {
	if o.Check {
		return check(r, o)
	}
	if _, err := os.Lstat(ready(o.Layout)); !errors.Is(err, fs.ErrNotExist) {
		return s, waits(o.Layout)
	}
	lock, err := clear(staging(o.Layout))
	if err != nil {
		return s, err
	}
	defer lock.Close()
	defer func() {
		if err != nil {
			_ = os.RemoveAll(staging(o.Layout))
		}
	}()
	blobs, err := content.Open(filepath.Join(staging(o.Layout), contentName))
	if err != nil {
		return s, err
	}
	in, err := blobs.Writer()
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	s.Manifest, err = backup.Read(r, func(m *backup.Manifest) error {
		return o.accept(m, blobs)
	}, func(f backup.File, r io.Reader) error {
		return s.take(ctx, o, in, f, r)
	})
	if err != nil {
		return s, err
	}
	if err := in.Flush(); err != nil {
		return s, err
	}
	s.Lost, s.Revived = o.There.Lost(s.Manifest), o.There.Revived(s.Manifest)
	if err := s.finish(ctx, o, blobs); err != nil {
		return s, err
	}
	if err := durable.Rename(staging(o.Layout), ready(o.Layout)); err != nil {
		return s, fault.Failedf("cannot lay down what was restored: %w", err)
	}
	return s, nil
}

// check reads a backup and keeps nothing of it.
func check(r io.Reader, o Options) (s Staged, err error) {
	s.Manifest, err = backup.Read(r, func(m *backup.Manifest) error {
		if o.Accepted != nil {
			o.Accepted(m)
		}
		return nil
	}, func(f backup.File, r io.Reader) error {
		if f.Name == backup.Config {
			return s.config(r)
		}
		return nil
	})
	if err == nil {
		s.Lost, s.Revived = o.There.Lost(s.Manifest), o.There.Revived(s.Manifest)
	}
	return s, err
}

// accept decides before anything but the list is read.
func (o Options) accept(m *backup.Manifest, blobs *content.Store) error {
	if err := o.There.permits(m, o.Replace); err != nil {
		return err
	}
	free, err := blobs.Free()
	if err != nil {
		return err
	}
	if m.Size() > free {
		return fault.Failedf("it needs %s, and there is room for %s", progress.Bytes(m.Size()), progress.Bytes(free)).
			Hint("make room in %q", o.Layout.ControllerState())
	}
	if o.Accepted != nil {
		o.Accepted(m)
	}
	return nil
}

// waits is why there can be no second restore before the first is taken up.
func waits(l layout.Layout) error {
	of := ""
	if order, err := Waiting(l); err == nil && order != nil {
		of = fmt.Sprintf(", of the backup of %s,", day(order.Backup))
	}
	return fault.Refusedf("an earlier restore%s waits to be taken up", of).
		Hint("start the control plane, which takes it up; or remove %q to give it up", ready(l))
}

// clear makes an empty directory to stage in, and holds it: whoever else restores is
// told.
func clear(dir string) (*os.File, error) {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Failedf("cannot begin to restore: %w", err)
	}
	// A file, because the directory itself is locked by who writes trust.json.
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fault.Failedf("cannot begin to restore: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fault.Failedf("another restore is at work in %q", dir).Hint("wait for it")
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		f.Close()
		return nil, fault.Failedf("cannot remove what an earlier restore left: %w", err)
	}
	return f, nil
}

// take stages one file.
func (s *Staged) take(ctx context.Context, o Options, in *content.Writer, f backup.File, r io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if hex, ok := f.Digest(); ok {
		return in.Put(ctx, digest.NewDigestFromEncoded(digest.SHA256, hex), f.Size, r)
	}
	switch f.Name {
	case backup.Config:
		return s.config(r) // the operator's: it is told, and not written
	case backup.Trust:
		return remembered(filepath.Join(staging(o.Layout), backup.Trust), r, trustHere(o.Layout))
	}
	d, err := durable.OpenDir(staging(o.Layout))
	if err != nil {
		return err
	}
	defer d.Close()
	p, err := d.Create(f.Name, durable.Perm(0o600))
	if err != nil {
		return err
	}
	defer p.Abort()
	if _, err := io.Copy(p, r); err != nil {
		return err
	}
	return p.Commit()
}

func (s *Staged) config(r io.Reader) error {
	b, err := io.ReadAll(r)
	s.Config = string(b)
	return err
}

func trustHere(l layout.Layout) string { return filepath.Join(l.ControllerState(), backup.Trust) }

// remembered stages what was remembered of releases, moved forward by what is
// remembered here: a restore must not bring back a key that was revoked since.
func remembered(path string, r io.Reader, here string) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(path, b, 0o600); err != nil {
		return err
	}
	if _, err := trust.ReadState(path); err != nil {
		return err
	}
	now, err := trust.ReadState(here)
	if err != nil {
		return nil // what is damaged here is set aside with the rest
	}
	var root *trust.Policy
	if len(now.Root) > 0 {
		if root, err = trust.FromRoot(now.Root); err != nil {
			return err
		}
	}
	return trust.Record(path, root, now.Counters)
}
