// Package replace notices that the host's own binary was replaced.
//
// The host restarts by ending, never by asking: after a pass is complete and
// recorded it looks, and when other content lies where it was started from, it
// exits zero and its supervisor starts the new one. It must not exit when the
// content is the same: reinstalling the same version replaces the inode, and a
// host that left for that would restart in a loop.
//
// /proc/self/exe reads as "… (deleted)" after a rename over it, an unlink or
// dpkg, but not when the file was renamed aside or a symlink was flipped; so
// the path's device and inode are compared, while the running image, held open
// by the kernel, keeps its own from being reused.
//
// A host that runs from the launcher's copy, because what is installed cannot
// live, watches the path of what is installed: it leaves when something else lies
// there than what it runs and what failed.
package replace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/opencontainers/go-digest"
)

// A Watch knows what runs and which path it is to be started from. It is for one
// goroutine.
type Watch struct {
	path    string
	running string // a path that always opens the running image
	sum     digest.Digest
	// stands: it runs from another place than path, for want of what lies there.
	stands bool
	// elsewhere are where else a host may be installed.
	elsewhere []string
	// shunned is the digest of what lay there when it was started for want of it.
	shunned digest.Digest
	// refused is the digest of what failed here.
	refused func() digest.Digest
	// seen is the file that was last hashed, and its digest.
	seen    id
	seenSum digest.Digest
}

type id struct {
	dev, ino uint64
	size     int64
	mtime    int64
}

// Config says what is known of how this process came to run.
type Config struct {
	// Given is the path of what is installed when another program runs for want of
	// it, else "".
	Given string
	// Elsewhere are where a host may be installed: one that is moved to another
	// place (a package over the floor) goes on from there.
	Elsewhere []string
	// Refused is the digest of what failed here and is not gone over to, or "".
	Refused func() digest.Digest
}

// Running returns the watch of this process. It is called at start, while the
// path still leads to what runs; the error says why there is nothing to watch.
func Running(c Config) (*Watch, error) {
	const self = "/proc/self/exe"
	path, err := os.Readlink(self)
	if err != nil {
		return nil, fmt.Errorf("cannot find the own binary: %w", err)
	}
	if was, deleted := strings.CutSuffix(path, " (deleted)"); deleted {
		path = was // it was replaced while it started
	}
	return watch(path, self, c)
}

func watch(path, running string, c Config) (*Watch, error) {
	sum, err := hash(running)
	if err != nil {
		return nil, fmt.Errorf("cannot read the own binary: %w", err)
	}
	w := &Watch{path: path, running: running, sum: sum, elsewhere: c.Elsewhere, refused: c.Refused}
	if c.Given != "" {
		w.path, w.stands = c.Given, true
		// What was there when this was started in its place is not gone over to, or
		// it would be again and again. What cannot be read is not there.
		w.shunned, _ = w.Installed()
	}
	return w, nil
}

// Path is where what runs was started from, or would have been.
func (w *Watch) Path() string { return w.path }

// Digest is that of what runs.
func (w *Watch) Digest() digest.Digest { return w.sum }

// Stands reports whether it runs from another place than Path, because what is
// there cannot live.
func (w *Watch) Stands() bool { return w.stands }

// Installed returns the digest of what lies at the path; the error is
// fs.ErrNotExist when there is nothing. It is hashed once for each inode.
func (w *Watch) Installed() (digest.Digest, error) {
	now, err := identify(w.path)
	if err != nil {
		return "", fmt.Errorf("cannot look at the own binary: %w", err)
	}
	self, err := identify(w.running)
	if err != nil {
		return "", fmt.Errorf("cannot look at the own binary: %w", err)
	}
	switch now {
	case self:
		return w.sum, nil
	case w.seen:
		return w.seenSum, nil
	}
	sum, err := hash(w.path)
	if err != nil {
		return "", fmt.Errorf("cannot read the own binary: %w", err)
	}
	w.seen, w.seenSum = now, sum
	return sum, nil
}

// Replaced says whether another program is to be started in the place of this
// one. A path at which nothing lies, for the moment between an unlink and a
// create or for good, is not replaced: there is nothing to start, unless a host is
// installed elsewhere.
func (w *Watch) Replaced() (bool, error) {
	sum, err := w.Installed()
	if errors.Is(err, fs.ErrNotExist) {
		return !w.stands && w.moved(), nil
	}
	if err != nil || sum == w.sum {
		return false, err
	}
	return sum != w.shunned && (w.refused == nil || sum != w.refused()), nil
}

func (w *Watch) moved() bool {
	for _, path := range w.elsewhere {
		if fi, err := os.Stat(path); path != w.path && err == nil && fi.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// Programs returns the digests of the programs at the paths: the host that runs
// and the one that last proved itself may have to be put back. One that is not
// there has none.
func Programs(paths ...string) ([]digest.Digest, error) {
	var out []digest.Digest
	for _, path := range paths {
		sum, err := hash(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the own binary: %w", err)
		}
		out = append(out, sum)
	}
	return out, nil
}

func identify(path string) (id, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return id{}, err
	}
	st := fi.Sys().(*syscall.Stat_t)
	return id{dev: st.Dev, ino: st.Ino, size: st.Size, mtime: fi.ModTime().UnixNano()}, nil
}

// maxProgram bounds what is hashed, in bytes, as the launcher does.
const maxProgram = 1 << 30

func hash(path string) (digest.Digest, error) {
	f, fi, err := input.Regular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if fi.Size() > maxProgram {
		return "", fmt.Errorf("%q has %d bytes, which no host has", path, fi.Size())
	}
	return digest.SHA256.FromReader(f)
}
