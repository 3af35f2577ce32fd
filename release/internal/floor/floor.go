// Package floor packs the floor tarball: the host for a machine that has
// nothing but a kernel, tar and gzip.
//
// The same inputs are the same bytes, whatever the machine, umask or time zone.
// One top folder with an entry of its own; root:root; modes 0755 and 0644;
// plain USTAR headers with one time; a gzip header without one. The MANIFEST
// comes first, its signature second and the binary last, so that a stream that
// was cut anywhere lacks something the manifest names. There is no entry for
// ".": the directory it is unpacked into keeps its mode.
//
// A finished tarball is read back, by code that shares nothing with the writer
// but the format, before it gets its name.
package floor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// The members; their names are those the installer looks for.
const (
	memberBinary  = "mesh-host"
	memberConfig  = "host.toml"
	memberLicense = "LICENSE"
	memberTrust   = "share/nox-mesh/trust"
)

// Spec says what a floor tarball shall hold.
type Spec struct {
	// Version is the release, without a leading "v".
	Version string
	// Architecture is as uname -m says it: "x86_64", "aarch64".
	Architecture string
	// Time is the one time of all members, to the second.
	Time time.Time
	// Host is the binary.
	Host []byte
	// License is the text of the licence.
	License []byte
	// Share are small files by their paths below share, where the installer lays
	// them: the manual page and what shells complete with.
	Share map[string][]byte
	// Roots is the chain of release roots, oldest first.
	Roots [][]byte
	// Signer signs the manifest.
	Signer crypto.Signer
}

// Name returns the file name of the tarball.
func (s Spec) Name() string {
	return fmt.Sprintf("%s-linux-%s.tar.gz", s.top(), s.Architecture)
}

func (s Spec) top() string { return "nox-mesh-host-" + s.Version }

// Write packs the tarball into the directory dir, under Name, whole or not at
// all.
func Write(dir string, s Spec) error {
	b, err := pack(s)
	if err != nil {
		return fmt.Errorf("cannot pack %q: %w", s.Name(), err)
	}
	if err := check(b, s.top()); err != nil {
		return fmt.Errorf("cannot pack %q: reading it back: %w", s.Name(), err)
	}
	if err := durable.WriteFile(filepath.Join(dir, s.Name()), b, 0o644); err != nil {
		return fmt.Errorf("cannot write %q: %w", s.Name(), err)
	}
	return nil
}

type member struct {
	path    string
	mode    int64
	content []byte
}

// members returns all but the manifest and its signature, sorted, the binary
// last.
func (s Spec) members() []member {
	list := []member{
		{memberLicense, 0o644, s.License},
		{memberConfig, 0o644, pkgbuild.HostConfig()},
	}
	for i, r := range s.Roots {
		list = append(list, member{fmt.Sprintf("%s/%d.root.json", memberTrust, i+1), 0o644, r})
	}
	for path, content := range s.Share {
		list = append(list, member{"share/" + path, 0o644, content})
	}
	slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.path, b.path) })
	return append(list, member{memberBinary, 0o755, s.Host})
}

func (s Spec) manifest() ([]byte, error) {
	m := pkgbuild.Manifest{Version: s.Version, Architecture: s.Architecture}
	for _, f := range s.members() {
		sum := sha256.Sum256(f.content)
		m.Members = append(m.Members, pkgbuild.Member{
			Path: f.path, Mode: uint32(f.mode), Size: int64(len(f.content)), SHA256: hex.EncodeToString(sum[:]),
		})
	}
	b := m.Encode()
	if _, err := pkgbuild.ParseManifest(b); err != nil {
		return nil, err
	}
	return b, nil
}

func pack(s Spec) ([]byte, error) {
	manifest, err := s.manifest()
	if err != nil {
		return nil, err
	}
	signature, err := trust.Sign(s.Signer, digest.FromBytes(manifest))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	// The zero header: no name, no time, no system (RFC 1952).
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := &treeWriter{tar: tar.NewWriter(z), top: s.top(), time: s.Time.UTC().Truncate(time.Second)}
	all := append([]member{
		{pkgbuild.ManifestName, 0o644, manifest},
		{pkgbuild.SignatureName, 0o644, signature},
	}, s.members()...)
	if err := t.directory("."); err != nil {
		return nil, err
	}
	for _, m := range all {
		if err := t.file(m); err != nil {
			return nil, err
		}
	}
	if err := t.tar.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// A treeWriter writes files, and each directory before the first file in it.
type treeWriter struct {
	tar  *tar.Writer
	top  string
	time time.Time
	seen []string
}

func (t *treeWriter) file(m member) error {
	if err := t.directory(path.Dir(m.path)); err != nil {
		return err
	}
	if err := t.header(tar.TypeReg, path.Join(t.top, m.path), m.mode, int64(len(m.content))); err != nil {
		return err
	}
	_, err := t.tar.Write(m.content)
	return err
}

func (t *treeWriter) directory(dir string) error {
	if slices.Contains(t.seen, dir) {
		return nil
	}
	if dir != "." {
		if err := t.directory(path.Dir(dir)); err != nil {
			return err
		}
	}
	t.seen = append(t.seen, dir)
	return t.header(tar.TypeDir, path.Join(t.top, dir)+"/", 0o755, 0)
}

func (t *treeWriter) header(kind byte, name string, mode, size int64) error {
	return t.tar.WriteHeader(&tar.Header{
		Format: tar.FormatUSTAR, Typeflag: kind, Name: name, Mode: mode, Size: size,
		ModTime: t.time, Uname: "root", Gname: "root",
	})
}
