package check

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// maxRoots bounds the release roots in one artefact.
const maxRoots = 1024

func (r *reading) floors(ctx context.Context) error {
	members := 0
	err := r.each(r.manifest.floorName, func(arch, name string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.signed(name); err != nil {
			return err
		}
		f, err := r.open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		l := &floor{reading: r, arch: arch, top: "nox-mesh-host-" + r.manifest.Version + "/", folders: map[string]bool{}}
		if err := l.read(bufio.NewReader(f)); err != nil {
			return wrong(name, err)
		}
		members += len(l.manifest.Members)
		return r.same(arch, "mesh-host", l.manifest.Members[len(l.manifest.Members)-1].SHA256, name)
	})
	if err != nil {
		return err
	}
	r.tell("tarballs", len(r.report.Architectures), "signature, order, owners, modes, times, nothing after the end")
	r.tell("members of tarballs", members, "size and SHA-256 as the signed MANIFEST says; the roots are those trusted")
	return nil
}

// gzipHead is the one header of a tarball, RFC 1952: no flags, no time, best
// compression, no system.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"

// A floor is one tarball being read.
type floor struct {
	*reading
	arch, top string
	manifest  pkgbuild.Manifest
	folders   map[string]bool
	sum       digest.Digest // of the MANIFEST
	files     int
	roots     [][]byte
}

func (f *floor) read(in *bufio.Reader) error {
	if head, err := in.Peek(len(gzipHead)); err != nil || string(head) != gzipHead {
		return errors.New("it does not begin as gzip does that says nothing more")
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	z.Multistream(false)
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := f.entry(h, t); err != nil {
			return fmt.Errorf("entry %.80q: %w", h.Name, err)
		}
	}
	if err := onlyZeros(z); err != nil {
		return err
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return errors.New("there is more after its end")
	}
	return f.whole()
}

// whole holds what is known at the end.
func (f *floor) whole() error {
	m := f.manifest
	if want := len(m.Members) + 2; f.files != want || len(m.Members) == 0 {
		return fmt.Errorf("it has %d files, its MANIFEST means %d", f.files, want)
	}
	if last := m.Members[len(m.Members)-1]; last.Path != "mesh-host" || last.Mode != 0o755 {
		return fmt.Errorf("its last file is %q, not the program", last.Path)
	}
	if m.Version != f.reading.manifest.Version || m.Architecture != f.arch {
		return fmt.Errorf("its MANIFEST is of %s for %s", m.Version, m.Architecture)
	}
	return f.trusted(f.roots)
}

func (f *floor) entry(h *tar.Header, content io.Reader) error {
	if h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || h.Gname != "root" || h.Linkname != "" || h.Format != tar.FormatUSTAR ||
		h.ModTime.Unix() != int64(f.reading.manifest.Counter) || h.Devmajor != 0 || h.Devminor != 0 {
		return errors.New("owner, time or format is another")
	}
	name, ok := strings.CutPrefix(h.Name, f.top)
	if !ok {
		return fmt.Errorf("it is not below %q", f.top)
	}
	if h.Typeflag == tar.TypeDir {
		if h.Mode != 0o755 || f.folders[name] || name != "" && !f.folders[parent(strings.TrimSuffix(name, "/"))] {
			return errors.New("it is not a folder of mode 0755, once, after the one it is in")
		}
		f.folders[name] = true
		return nil
	}
	if h.Typeflag != tar.TypeReg || !f.folders[parent(name)] {
		return errors.New("it is not a file in a folder that came before")
	}
	defer func() { f.files++ }()
	if f.files < 2 {
		return f.head(h, name, content)
	}
	if f.files-2 >= len(f.manifest.Members) {
		return errors.New("the MANIFEST does not name it")
	}
	m := f.manifest.Members[f.files-2]
	if name != m.Path || h.Mode != int64(m.Mode) || h.Size != m.Size {
		return fmt.Errorf("the MANIFEST means %q here, of mode %04o and %d bytes", m.Path, m.Mode, m.Size)
	}
	sum := sha256.New()
	var kept bytes.Buffer
	to := io.Writer(sum)
	root := path.Dir(name) == "share/nox-mesh/trust"
	if root {
		if m.Size > trust.MaxRoot || len(f.roots) == maxRoots {
			return errors.New("it is too large")
		}
		to = io.MultiWriter(sum, &kept)
	}
	if _, err := io.Copy(to, content); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != m.SHA256 {
		return errors.New("its SHA-256 is not what the MANIFEST says")
	}
	if root {
		f.roots = append(f.roots, kept.Bytes())
	}
	return nil
}

// head reads the MANIFEST and its signature, which come first.
func (f *floor) head(h *tar.Header, name string, content io.Reader) error {
	want, max := pkgbuild.ManifestName, int64(pkgbuild.MaxManifestSize)
	if f.files == 1 {
		want, max = pkgbuild.SignatureName, trust.MaxSignature
	}
	if name != want || h.Mode != 0o644 || h.Size > max {
		return fmt.Errorf("%q does not come here", want)
	}
	b, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	if f.files == 0 {
		f.sum = digest.FromBytes(b)
		f.manifest, err = pkgbuild.ParseManifest(b)
		return err
	}
	_, err = f.Policy.Verify(f.sum, [][]byte{b}, trust.ScopeRelease)
	return err
}

// trusted holds that the roots an artefact brings are those that are trusted
// here, as far as both go, and a chain beyond.
func (r *reading) trusted(roots [][]byte) error {
	if len(roots) == 0 {
		return errors.New("it brings no release root")
	}
	// By name 10.root.json comes before 2.root.json; a chain goes by version.
	sortRoots(roots)
	p, err := r.Policy.Advance(roots)
	if err != nil {
		return err
	}
	for _, b := range roots {
		root, err := trust.ParseRoot(b)
		if err != nil {
			return err
		}
		for _, c := range p.Chain() {
			ours, err := trust.ParseRoot(c)
			if err != nil {
				return err
			}
			if ours.Version == root.Version && !bytes.Equal(b, c) {
				return fmt.Errorf("its release root %d is another", root.Version)
			}
		}
	}
	return nil
}

func sortRoots(roots [][]byte) {
	version := func(b []byte) int {
		if r, err := trust.ParseRoot(b); err == nil {
			return r.Version
		}
		return 0
	}
	slices.SortStableFunc(roots, func(a, b []byte) int { return version(a) - version(b) })
}

// parent is the folder of name, as folders has it.
func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i+1]
	}
	return ""
}

// onlyZeros reads what fills the last record of an archive, to the end.
func onlyZeros(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return err
	}
	if len(bytes.Trim(b, "\x00")) > 0 || len(b) == 1<<20 {
		return errors.New("there is more after the end of its archive")
	}
	return nil
}
