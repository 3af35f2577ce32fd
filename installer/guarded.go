package installer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/guard"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// onlyRoot says to an ordinary user what would otherwise be the refusal of one
// directory or another.
func onlyRoot(verb string, l layout.Layout) error {
	if l.IsMachine() && os.Geteuid() != 0 {
		return fault.Failedf("cannot %s: only root may do that on this machine", verb).Hint("use sudo")
	}
	return nil
}

// guarded refuses, before anything is read or touched, a machine on which
// somebody else can put something in the place of what is laid down, or already
// has: whoever owns a directory on the way to the trust decides what is
// trusted, and whoever owns the state what root executes.
func guarded(l layout.Layout, prefix string) error {
	all := []string{l.HostConfig(), l.AdminTrust(), filepath.Dir(l.HostSocket())}
	for _, p := range places(l, prefix) {
		all = append(all, p.path)
	}
	for _, page := range memberPages {
		all = append(all, filepath.Dir(l.Path(filepath.Join(prefix, page))))
	}
	if err := l.Inside(all...); err != nil {
		return err
	}
	for _, path := range append(all, stateParts(l)...) {
		if err := guard.Way(l.Root, path); err != nil {
			return err
		}
	}
	return nil
}

// guardedState is guarded for what an uninstall believes and goes through.
func guardedState(l layout.Layout) error {
	if err := l.Inside(); err != nil {
		return err
	}
	return guard.Way(l.Root, l.InstallManifest())
}

// stateParts are what the host keeps under its state directory and believes.
func stateParts(l layout.Layout) []string {
	return []string{
		l.InstallManifest(), l.HostStore(), l.HostIdentity(), l.TrustState(), l.Content(), l.Processes(),
	}
}

// mine reports whether the file at path, which is kept if it has the right
// content, is one that nobody else may write.
func mine(path string) (bool, error) {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return guard.Own(path, fi) == nil, nil
}
