package pack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
)

// put writes a file of the release.
func (p *packing) put(name string, content []byte) error {
	if err := durable.WriteFile(filepath.Join(p.dir, name), content, 0o644); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	return p.add(name)
}

// add takes a finished file into the release, as it is on the disk.
func (p *packing) add(name string) error {
	f, err := os.Open(filepath.Join(p.dir, name))
	if err != nil {
		return fmt.Errorf("cannot read back %q: %w", name, err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot read back %q: %w", name, err)
	}
	d, err := digest.SHA256.FromReader(f)
	if err != nil {
		return fmt.Errorf("cannot read back %q: %w", name, err)
	}
	p.files = append(p.files, check.File{Name: name, Size: fi.Size(), SHA256: d.Encoded()})
	slices.SortFunc(p.files, func(a, b check.File) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// addAll takes the files of a directory into the release.
func (p *packing) addAll(dir string) error {
	entries, err := os.ReadDir(filepath.Join(p.dir, dir))
	if err != nil {
		return fmt.Errorf("cannot read back %q: %w", dir, err)
	}
	for _, e := range entries {
		if err := p.add(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// finish writes SHA256SUMS, then release.json, both signed.
func (p *packing) finish() (*Manifest, error) {
	p.manifest.Files = p.files
	if err := p.Signer.Write(filepath.Join(p.dir, check.SumsName), p.manifest.Sums()); err != nil {
		return nil, err
	}
	b, err := p.manifest.Encode()
	if err != nil {
		return nil, err
	}
	return &p.manifest, p.Signer.Write(filepath.Join(p.dir, check.ManifestName), b)
}
