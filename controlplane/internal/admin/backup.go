package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/backup"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// A Backup says what is to be in a backup.
type Backup struct {
	WithoutContent bool `json:"without_content,omitempty"`
}

// draw is the verb of a backup. What comes is open: who asks closes it, so that a
// passphrase never leaves the command that was given it.
var draw = door.Download[Backup]{Name: "backup"}

// DrawBackup writes a backup of the control plane that is running to w, open.
func DrawBackup(ctx context.Context, c *Client, q Backup, w io.Writer) error {
	err := draw.Fetch(ctx, c, q, w)
	if door.HowOf(err) == door.Cut {
		return fault.Failedf("the control plane ended while it was read").Hint("run it again")
	}
	return err
}

// backup sends the state as it is at one moment, and what that names. The lease
// keeps the content until it is sent: what is not needed any more meanwhile goes
// later.
func (d *Desk) backup(ctx context.Context, q Backup, w io.Writer) error {
	lease, err := d.Content.Lease()
	if err != nil {
		return err
	}
	defer lease.Release()
	aside, err := unnamed(d.Layout.ControllerState())
	if err != nil {
		return fault.Failedf("cannot copy the state: %w", err)
	}
	defer aside.Close()
	m := &backup.Manifest{Made: d.now(), By: version.Running(), WithoutContent: q.WithoutContent}
	var kept content.Kept
	sum := sha256.New()
	// To a file first: whoever takes the backup may be slow, and would hold a
	// transaction as long.
	err = d.Office.Store.Copy(io.MultiWriter(aside, sum), func(tx *state.Tx) error {
		if err := describe(tx, m); err != nil {
			return err
		}
		kept, err = module.Needed(tx)
		return err
	})
	if err != nil {
		return err
	}
	size, err := aside.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	m.Pin = d.Office.Authority.Pin()
	m.Files = []backup.File{{Name: backup.State, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}}
	small, err := d.smallFiles(m)
	if err != nil {
		return err
	}
	if !q.WithoutContent {
		if err := d.contentOf(ctx, m, kept); err != nil {
			return err
		}
	}
	err = backup.Write(w, m, func(f backup.File) (io.ReadCloser, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if b, ok := small[f.Name]; ok {
			return io.NopCloser(bytes.NewReader(b)), nil
		}
		if hex, ok := f.Digest(); ok {
			return d.Content.Open(digest.NewDigestFromEncoded(digest.SHA256, hex))
		}
		return io.NopCloser(io.NewSectionReader(aside, 0, size)), nil
	})
	if err == nil {
		d.Log.Info("a backup is made", "epoch", m.Epoch, "nodes", len(m.Nodes), "bytes", m.Size())
	}
	return err
}

// describe writes down what is in the state.
func describe(tx *state.Tx, m *backup.Manifest) error {
	mesh, err := tx.Mesh()
	if err != nil {
		return err
	}
	m.Mesh, m.Epoch, m.Addresses = mesh.ID, mesh.Epoch, tx.Addresses()
	nodes, err := tx.Nodes()
	if err != nil {
		return err
	}
	m.Nodes, m.Modules = []backup.Node{}, []string{}
	for _, n := range nodes {
		m.Nodes = append(m.Nodes, backup.Node{ID: n.ID, Name: n.Name, State: string(n.State)})
	}
	modules, err := tx.Modules()
	for _, mod := range modules {
		m.Modules = append(m.Modules, mod.Name)
	}
	return err
}

// smallFiles are the files beside the state.
func (d *Desk) smallFiles(m *backup.Manifest) (map[string][]byte, error) {
	const most = 1 << 20 // as their readers have it
	dir := d.Layout.ControllerState()
	files := map[string][]byte{}
	for _, f := range []struct{ name, path string }{
		{backup.Founded, filepath.Join(dir, backup.Founded)},
		{backup.Trust, trustState(d.Layout)},
		{backup.Config, d.Layout.ControllerConfig()},
	} {
		b, err := input.ReadFile(f.path, most)
		// The operator's file may be closed to us by now; it is information.
		if errors.Is(err, fs.ErrNotExist) || err != nil && f.name == backup.Config {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", f.path, err)
		}
		sum := sha256.Sum256(b)
		m.Files = append(m.Files, backup.File{Name: f.name, Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:])})
		files[f.name] = b
	}
	if files[backup.Founded] == nil {
		return nil, fault.Failedf("cannot find %q", filepath.Join(dir, backup.Founded)).Hint("start the control plane again: it writes that anew")
	}
	return files, nil
}

// contentOf adds the content that is needed and here: what a machine brought along
// is named and is not.
func (d *Desk) contentOf(ctx context.Context, m *backup.Manifest, kept content.Kept) error {
	reached, err := d.Content.Reached(ctx, kept)
	if err != nil {
		return err
	}
	for _, blob := range reached {
		f, err := d.Content.Open(blob)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		fi, err := f.Stat()
		f.Close()
		if err != nil {
			return err
		}
		m.Files = append(m.Files, backup.Blob(blob.Encoded(), fi.Size()))
	}
	return nil
}

// unnamed makes a file in dir that goes with its last descriptor: a kill leaves
// nothing.
func unnamed(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), filepath.Join(dir, "backup")), nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EINVAL) {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	// The file system has none such (open(2)).
	f, err := os.CreateTemp(dir, ".backup-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// TakeUp asks the control plane that is running to begin anew with what a restore
// laid down beside its state (package restore).
var TakeUp = door.Verb[None, None]{Name: "take-up", Again: true}

func (d *Desk) takeUp(context.Context, None) (None, error) {
	d.Reopen()
	return None{}, nil
}
