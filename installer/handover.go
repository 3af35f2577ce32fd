package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// HandOver has a host that a tarball installed make way for the one of a package:
// what the tarball laid down and is unchanged goes, by its record, and the
// package's unit is the one in force. It installs nothing. State, launcher and
// configuration stay, and so does what a person changed.
//
// The running host goes on until it notices, in its next pass, that its binary is
// gone and the package's is there; it then ends, and its unit starts that one.
//
// Killed half way it can be called again; the record goes last. Where nothing of
// a tarball's is left it does nothing.
func HandOver(ctx context.Context, o HandOverOptions) (UninstallSummary, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	l := o.Layout
	h := &removal{layout: l, out: o.Out, summary: UninstallSummary{Removed: []string{}}}
	if err := onlyRoot("hand over", l); err != nil {
		return h.summary, err
	}
	if err := guardedState(l); err != nil {
		return h.summary, fmt.Errorf("cannot hand over: %w", err)
	}
	if err := successor(l); err != nil {
		return h.summary, err
	}
	rec, ok, err := readRecord(l)
	if err != nil || !ok || len(rec.Files) == 0 {
		return h.summary, err
	}
	h.rec = rec
	if err := l.Inside(rec.parents(l)...); err != nil {
		return h.summary, fmt.Errorf("cannot hand over: %w", err)
	}
	unlock, err := lock(l.State())
	if err != nil {
		return h.summary, fmt.Errorf("cannot hand over: %w", err)
	}
	defer unlock()
	if err := h.handOver(ctx, findManager(l)); err != nil {
		return h.summary, fmt.Errorf("cannot hand over: %w", err)
	}
	h.tell(ctx, o.Pass)
	return h.summary, nil
}

// successor refuses where no package's host could take over.
func successor(l layout.Layout) error {
	binary := l.HostBinary(layout.PackagePrefix)
	by, ok := packaged(l)
	if fi, err := os.Stat(binary); !ok || err != nil || !fi.Mode().IsRegular() || fi.Mode()&0o111 == 0 {
		return fault.Refusedf("cannot hand over: no package owns the host on this machine").
			Hint("install the package nox-mesh-host first; it hands over by itself")
	}
	if by != packagedUnit {
		return fault.Refusedf("cannot hand over: the package's unit %q is not there", packagedUnit).
			Hint("reinstall the package nox-mesh-host")
	}
	return nil
}

// handOver removes the unit first: from then on the supervisor starts the
// package's host, whatever becomes of the rest.
func (h *removal) handOver(ctx context.Context, m manager) error {
	unit := laid{Path: unitPath(), SHA256: h.rec.digests(unitPath())}
	if err := h.mayLose(unit); err != nil {
		return err
	}
	if err := h.file(unit); err != nil {
		return err
	}
	if m != "" {
		if err := m.renew(ctx); err != nil {
			return err
		}
	}
	for _, f := range slices.Backward(h.rec.Files) {
		if f.Path == unit.Path || h.isPackages(f.Path) {
			continue
		}
		if err := h.file(f); err != nil {
			return err
		}
	}
	stays := []string{h.layout.State(), filepath.Dir(h.layout.HostConfig())}
	if err := h.directories(func(path string) bool {
		return !h.isPackages(h.machine(path)) && !slices.ContainsFunc(stays, func(s string) bool {
			return path == s || isAbove(path, s) || isAbove(s, path)
		})
	}); err != nil {
		return err
	}
	if err := h.sweep(h.layout.InstallManifest()); err != nil {
		return err
	}
	return durable.Remove(h.layout.InstallManifest())
}

// mayLose refuses, before anything is touched, where a person changed the unit: it
// would stay, hide the package's, and start a binary that is gone.
func (h *removal) mayLose(unit laid) error {
	path := h.layout.Path(unit.Path)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if have, _, err := look(path); err != nil || slices.Contains(unit.SHA256, have) {
		return err
	}
	return fault.Refusedf("%q was changed here; it hides the package's unit and starts the tarball's host", unit.Path).
		Hint("put the change into a drop-in (systemctl edit %s), remove that file, then run %s", layout.HostUnit, HandOverCommand)
}

// isPackages reports whether a path of the machine is the package's by now: the
// configuration, which both lay down, and all under its prefix.
func (h *removal) isPackages(path string) bool {
	l := layout.Layout{}
	return path == l.HostConfig() || h.rec.Prefix == layout.PackagePrefix && isAbove(layout.PackagePrefix, path) && !isAbove(layout.FloorPrefix, path)
}

// passTime bounds the wait for the pass in which the running host goes over: the
// pass may be the one that runs the package manager, which runs this.
const passTime = 5 * time.Second

func (h *removal) tell(ctx context.Context, pass Passer) {
	_, runs, err := runningHost(h.layout)
	if err != nil || !runs || pass == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, passTime)
	defer cancel()
	if pass.Pass(ctx) != nil {
		fmt.Fprintf(h.out, "the running host goes over to the package's at its next pass\n")
	}
}
