package keys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A State is what a directory of keys says: who signs what now.
type State struct {
	// Version and Root are the newest release root and its fingerprint, the
	// hex SHA-256 of its file.
	Version int    `json:"version"`
	Root    string `json:"root"`
	// RootKey and ReleaseKey are the ids of the keys that sign now.
	RootKey    string `json:"rootKey"`
	ReleaseKey string `json:"releaseKey"`
	// Package is the fingerprint of the key that signs packages now, and Next
	// that of the one that is trusted already and will be the next, or "".
	Package string `json:"package"`
	Next    string `json:"nextPackage,omitempty"`
	// Revoked are the ids that never count again.
	Revoked []string `json:"revoked"`
}

// A history is the chain of roots as the publisher's directory has it.
type history struct {
	dir    string
	files  [][]byte
	policy *trust.Policy
	roots  []*trust.Root
	// pointer is the fingerprint in PackageCurrent, or "".
	pointer string
}

// A birth is a key and the version of the root that named it first.
type birth struct {
	version int
	key     trust.Key
}

func readHistory(dir string) (*history, error) {
	files, err := Roots(dir)
	if err != nil {
		return nil, err
	}
	policy, err := trust.FromRoot(files[0])
	if err == nil {
		policy, err = policy.Advance(files[1:])
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the release roots of %q: %w", dir, err)
	}
	h := &history{dir: dir, files: files, policy: policy}
	for _, f := range files {
		r, err := trust.ParseRoot(f)
		if err != nil {
			return nil, err
		}
		h.roots = append(h.roots, r)
	}
	b, err := read(filepath.Join(dir, PackageCurrent))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read which package key signs: %w", err)
	}
	h.pointer = strings.TrimSuffix(string(b), "\n")
	return h, nil
}

func (h *history) newest() *trust.Root { return h.roots[len(h.roots)-1] }

// living are the keys for scope that the newest root names, in the order in
// which they were made.
func (h *history) living(scope trust.Scope) []birth {
	var out []birth
	for _, k := range h.newest().Keys {
		if !slices.Contains(k.Scope, scope) {
			continue
		}
		first := slices.IndexFunc(h.roots, func(r *trust.Root) bool {
			return slices.ContainsFunc(r.Keys, func(o trust.Key) bool { return o.ID == k.ID })
		})
		out = append(out, birth{h.roots[first].Version, k})
	}
	slices.SortFunc(out, func(a, b birth) int { return a.version - b.version })
	return out
}

// current is the youngest key for scope.
func (h *history) current(scope trust.Scope) (birth, error) {
	all := h.living(scope)
	if len(all) == 0 {
		return birth{}, fault.Refusedf("cannot use the keys of %q: release root %d names no %s key", h.dir, h.newest().Version, scope)
	}
	return all[len(all)-1], nil
}

// packages are the package key that signs and the one after it. The pointer
// says from which on; without one it is the first, and when the one it says
// was revoked it is the next.
func (h *history) packages() (now birth, next *birth, err error) {
	var from int
	for _, r := range h.roots {
		if h.pointer != "" && slices.ContainsFunc(r.Keys, func(k trust.Key) bool { return k.ID == h.pointer }) {
			from = r.Version
			break
		}
	}
	if h.pointer != "" && from == 0 {
		return now, nil, fault.Refusedf("cannot use the keys of %q: %q names a key that is in no release root", h.dir, PackageCurrent)
	}
	all := slices.DeleteFunc(h.living(trust.ScopePackage), func(b birth) bool { return b.version < from })
	if len(all) == 0 {
		return now, nil, fault.Refusedf("cannot sign packages: release root %d names no key for it", h.newest().Version).
			Hint("make one with \"mesh-release keys rotate %s --package\"", fault.Word(h.dir))
	}
	if len(all) > 1 {
		next = &all[1]
	}
	return all[0], next, nil
}

func (h *history) state() (State, error) {
	version, print := h.policy.Root()
	s := State{Version: version, Root: print, Revoked: h.newest().Revoked}
	root, err := h.current(trust.ScopeRoot)
	if err != nil {
		return s, err
	}
	release, err := h.current(trust.ScopeRelease)
	if err != nil {
		return s, err
	}
	now, next, err := h.packages()
	if err != nil {
		return s, err
	}
	s.RootKey, s.ReleaseKey, s.Package = root.key.ID, release.key.ID, now.key.ID
	if next != nil {
		s.Next = next.key.ID
	}
	return s, nil
}

// numbered is the name of the file base that root version brought.
func numbered(version int, base string) string {
	if version == 1 {
		return base
	}
	return fmt.Sprintf("%d.%s", version, base)
}

var unborn = regexp.MustCompile(`^([1-9][0-9]*)\.(?:root\.key|release\.key|release\.pub|package\.secret\.asc|package\.pub\.asc)$`)

// leftovers are the files of keys that no root names: those of a rotation that
// was killed before its root was written.
func leftovers(dir string, version int) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if m := unborn.FindStringSubmatch(e.Name()); m != nil {
			if n, err := strconv.Atoi(m[1]); err != nil || n > version {
				out = append(out, e.Name())
			}
		}
	}
	return out, nil
}

// locked holds the directory for one writer while do runs.
func locked(dir string, do func() error) error {
	d, err := durable.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Failedf("cannot use the directory of keys: there is no %q", dir).
			Hint("make keys with \"mesh-release keys init %s\"", fault.Word(dir))
	}
	if err != nil {
		return fmt.Errorf("cannot use the directory of keys: %w", err)
	}
	defer d.Close()
	if err := flock(d.FD()); err != nil {
		return fault.Failedf("cannot use the directory of keys: %q is in use by another mesh-release", dir)
	}
	return do()
}
