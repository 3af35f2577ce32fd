package arch

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// maxMetadata bounds one file of metadata. A .MTREE of MaxFiles is well below.
const maxMetadata = 64 << 20

// maxPkgInfo bounds .PKGINFO.
const maxPkgInfo = 1 << 20

// ReadMeta reads a package to its end, and returns what it says of itself.
//
// Everything is refused (fault.Refused) that Write would not write and pacman
// might understand in two ways: a name outside the grammar, a field twice or
// unknown, a path that is absolute, leads out, lies below a file or is there
// twice, metadata that does not come first, more than zeros after the archive,
// more than MaxFiles files or MaxUnpacked bytes. It accepts what makepkg writes
// with zstd; a file's content and the .MTREE are not looked at.
func ReadMeta(r io.Reader) (Meta, error) {
	m, _, err := readArchive(r)
	return m, err
}

func readArchive(r io.Reader) (Meta, []entry, error) {
	var m Meta
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(128<<20), zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return m, nil, err
	}
	defer z.Close()
	a := &archive{kinds: map[string]byte{}, rest: MaxUnpacked}
	if err := a.read(z); err != nil {
		var f *fault.Error
		if errors.As(err, &f) {
			return m, nil, err
		}
		return m, nil, fault.Refusedf("cannot read package: %w", err)
	}
	if m, err = parsePkgInfo(a.pkginfo); err != nil {
		return m, nil, err
	}
	for _, e := range a.entries {
		if strings.HasPrefix(e.path, ".") {
			continue
		}
		p := e.path
		if e.kind == tar.TypeDir {
			p += "/"
		}
		m.Files = append(m.Files, p)
	}
	return m, a.entries, nil
}

// An archive is what was read of one so far.
type archive struct {
	entries []entry
	kinds   map[string]byte // by path
	pkginfo []byte
	rest    int64 // bytes that may still come
}

func (a *archive) read(r io.Reader) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := a.entry(h, t); err != nil {
			return err
		}
	}
	for _, name := range []string{".BUILDINFO", ".MTREE", ".PKGINFO"} {
		if a.kinds[name] == 0 {
			return fault.Refusedf("cannot read package: it has no %s", name)
		}
	}
	return onlyZeros(r)
}

func (a *archive) entry(h *tar.Header, content io.Reader) error {
	e := entry{
		path: strings.TrimSuffix(h.Name, "/"), kind: h.Typeflag, mode: h.Mode, owner: h.Uname, group: h.Gname,
		link: h.Linkname, size: h.Size,
	}
	bad := func(why string) error {
		return fault.Refusedf("cannot read package: entry %.80q %s", h.Name, why)
	}
	if err := checkPath(e.path); err != nil {
		return bad("is no plain relative path")
	}
	if len(a.entries) >= MaxFiles {
		return bad("is one too many")
	}
	if a.kinds[e.path] != 0 {
		return bad("is there twice")
	}
	for i := range len(e.path) {
		if e.path[i] == '/' && a.kinds[e.path[:i]] != 0 && a.kinds[e.path[:i]] != tar.TypeDir {
			return bad("lies below one that is no directory")
		}
	}
	if err := a.checkKind(e, strings.HasSuffix(h.Name, "/")); err != nil {
		return bad(err.Error())
	}
	if a.rest -= e.size; e.size < 0 || a.rest < 0 {
		return bad("is one too large")
	}
	a.kinds[e.path] = e.kind
	sha := sha256.New()
	if e.path == ".PKGINFO" {
		b, err := io.ReadAll(io.LimitReader(content, maxPkgInfo+1))
		if err != nil {
			return err
		}
		if len(b) > maxPkgInfo {
			return bad("is too large")
		}
		a.pkginfo = b
		sha.Write(b)
	} else if _, err := io.Copy(sha, content); err != nil {
		return err
	}
	if e.kind == tar.TypeReg {
		e.sha256 = [sha256.Size]byte(sha.Sum(nil))
	}
	a.entries = append(a.entries, e)
	return nil
}

// checkKind holds what may be where: metadata first, then files, directories and
// links.
func (a *archive) checkKind(e entry, slash bool) error {
	if strings.HasPrefix(e.path, ".") {
		known := slices.Contains([]string{".BUILDINFO", ".CHANGELOG", ".INSTALL", ".MTREE", ".PKGINFO"}, e.path)
		first := len(a.entries) == 0 || strings.HasPrefix(a.entries[len(a.entries)-1].path, ".")
		if !known || !first || e.kind != tar.TypeReg || e.size > maxMetadata {
			return errors.New("is no metadata of a package, or not where that belongs")
		}
	}
	switch {
	case e.mode&^0o7777 != 0:
		return errors.New("has a mode that is none")
	case (e.kind == tar.TypeDir) != slash:
		return errors.New("has the name of another kind of entry")
	case e.kind == tar.TypeLink && a.kinds[e.link] != tar.TypeReg:
		return errors.New("is a hard link to no file of the package")
	case e.kind == tar.TypeSymlink && (e.link == "" || hasControl(e.link)):
		return errors.New("is a symlink to nowhere")
	case e.kind == tar.TypeReg, e.kind == tar.TypeDir, e.kind == tar.TypeLink, e.kind == tar.TypeSymlink:
		return nil
	}
	return errors.New("is neither file, directory nor link")
}

// onlyZeros reads what fills the last record of an archive.
func onlyZeros(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return err
	}
	for _, c := range b {
		if c != 0 {
			return fault.Refusedf("cannot read package: there is more after the end of its archive")
		}
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return fault.Refusedf("cannot read package: it does not end with its archive")
	}
	return nil
}
