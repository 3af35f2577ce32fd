package installer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A record is install.json: what was laid down on this machine, or is being
// laid down at this moment. All paths are paths of the machine, so an
// installed tree can be moved.
type record struct {
	Schema int `json:"schema"`
	// Version is the last one that was laid down whole, "" before the first.
	Version string `json:"version"`
	Prefix  string `json:"prefix"`
	// Complete is false while an install is at work, or was killed at it.
	Complete bool `json:"complete"`
	// Directories were made by an install, parents first.
	Directories []string `json:"directories"`
	Files       []laid   `json:"files"`
	// Launcher is the SHA-256 of the launcher copy at the last install: it may
	// be that of an earlier version, and is ours all the same.
	Launcher string `json:"launcher,omitempty"`
}

// A laid file is ours as long as its content has one of the digests: the last
// is what this version installs, an earlier one what it replaces.
type laid struct {
	Path   string   `json:"path"`
	SHA256 []string `json:"sha256"`
}

const recordSchema = 1

// readRecord returns what install.json says; ok is false when there is none,
// which an empty file is too (a power cut leaves one where fsync was not
// reached).
func readRecord(l layout.Layout) (r record, ok bool, err error) {
	path := l.InstallManifest()
	b, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) == 0 {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, fmt.Errorf("cannot read what was installed: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return record{}, false, fmt.Errorf("cannot read what was installed: %q: %w", path, err)
	}
	if r.Schema != recordSchema {
		return record{}, false, fmt.Errorf("cannot read what was installed: %q has schema %d, this program knows %d", path, r.Schema, recordSchema)
	}
	paths := slices.Clone(r.Directories)
	for _, f := range r.Files {
		paths = append(paths, f.Path)
	}
	for _, p := range append(paths, r.Prefix) {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p {
			return record{}, false, fmt.Errorf("cannot read what was installed: %q names %q, which is not absolute and clean", path, p)
		}
	}
	return r, true, nil
}

func (r record) encode() []byte {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return append(b, '\n')
}

// write makes r what install.json says; it writes nothing when it says so
// already.
func (r record) write(l layout.Layout) error {
	want := r.encode()
	if have, err := os.ReadFile(l.InstallManifest()); err == nil && bytes.Equal(have, want) {
		return nil
	}
	if err := durable.WriteFile(l.InstallManifest(), want, 0o600); err != nil {
		return fmt.Errorf("cannot record what is installed: %w", err)
	}
	return nil
}

// digests returns the digests under which the file at path is ours.
func (r record) digests(path string) []string {
	for _, f := range r.Files {
		if f.Path == path {
			return f.SHA256
		}
	}
	return nil
}

// set says that the file at path is ours under exactly these digests.
func (r *record) set(path string, digests ...string) {
	digests = slices.Compact(digests)
	for i := range r.Files {
		if r.Files[i].Path == path {
			r.Files[i].SHA256 = digests
			return
		}
	}
	r.Files = append(r.Files, laid{Path: path, SHA256: digests})
}

// parents are the directories something that the record names is in.
func (r record) parents(l layout.Layout) []string {
	var all []string
	for _, dir := range r.Directories {
		all = append(all, l.Path(filepath.Dir(dir)))
	}
	for _, f := range r.Files {
		all = append(all, filepath.Dir(l.Path(f.Path)))
	}
	return all
}
