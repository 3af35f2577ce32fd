package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

const (
	// maxMembers and maxName bound the memory for an archive's names: PATH_MAX is
	// that many bytes.
	maxMembers = 1 << 16
	maxName    = 4096
	// maxLinks bounds how often a link may lead to another.
	maxLinks = 8
)

// An archive is a tar file: what is where in it. Members are read in their place,
// from the file as it is then.
type archive struct {
	path    string
	members map[string]member
}

// A member is a file, or a link when it has a target.
type member struct {
	offset, size int64
	target       string
	// refuse says why it cannot be read; "" when it can.
	refuse string
}

// readArchive reads the headers of a tar file.
func readArchive(file string) (*archive, error) {
	f, err := openFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := plainTar(f); err != nil {
		return nil, err
	}
	a := &archive{path: file, members: map[string]member{}}
	for t := tar.NewReader(f); ; {
		h, err := t.Next()
		if err == io.EOF {
			return a, nil
		}
		if err != nil {
			return nil, fault.Refusedf("it is no whole tar archive: %w", err)
		}
		// The reader takes headers a block at a time and no more, so the file
		// is where the content begins.
		offset, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if err := a.add(h, offset); err != nil {
			return nil, err
		}
	}
}

func (a *archive) add(h *tar.Header, offset int64) error {
	name := strings.TrimPrefix(h.Name, "./")
	if !fs.ValidPath(name) || len(name) > maxName || len(h.Linkname) > maxName {
		// Nothing is looked for under such a name.
		return nil
	}
	if len(a.members) == maxMembers {
		return fault.Refusedf("it has more than %d members", maxMembers)
	}
	m := member{offset: offset, size: h.Size}
	switch h.Typeflag {
	case tar.TypeReg:
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				m.refuse = "is a sparse member"
			}
		}
	case tar.TypeLink:
		m.target = path.Clean(h.Linkname)
		m.refuse = leadsOut(m.target)
	case tar.TypeSymlink:
		m.target = path.Join(path.Dir(name), h.Linkname)
		if m.refuse = leadsOut(m.target); path.IsAbs(h.Linkname) {
			m.refuse = leadsOut(h.Linkname)
		}
	case tar.TypeDir:
		return nil
	default:
		m.refuse = "is neither file nor link"
	}
	if _, twice := a.members[name]; twice {
		// Programs differ about which of the two counts.
		m.refuse = "is there twice"
	}
	a.members[name] = m
	return nil
}

// leadsOut says of a link to target that it leads out of the archive, if so.
func leadsOut(target string) string {
	if fs.ValidPath(target) {
		return ""
	}
	return "is a link that leads out of the archive"
}

// member finds a file, where a link leads to if it is one.
func (a *archive) member(name string) (member, error) {
	first := name
	for range maxLinks {
		m, ok := a.members[name]
		if !ok {
			return m, fmt.Errorf("%q: %w", first, fs.ErrNotExist)
		}
		if m.refuse != "" {
			return m, fault.Refusedf("member %q %s", name, m.refuse)
		}
		if m.target == "" {
			return m, nil
		}
		name = m.target
	}
	return member{}, fault.Refusedf("member %q is a link to a link, and so on", first)
}

func (a *archive) file(name string) (io.ReadCloser, int64, error) {
	m, err := a.member(name)
	if err != nil {
		return nil, 0, err
	}
	f, err := openFile(a.path)
	if err != nil {
		return nil, 0, err
	}
	return section{io.NewSectionReader(f, m.offset, m.size), f}, m.size, nil
}

// A section is a part of a file.
type section struct {
	io.Reader
	io.Closer
}

// openFile opens a regular file. A pipe in its place does not hold us up.
func openFile(name string) (*os.File, error) {
	f, _, err := input.Regular(name)
	if errors.Is(err, input.ErrNotRegular) {
		return nil, fault.Refusedf("%w", err)
	}
	return f, err
}

// plainTar tells a compressed archive from one that is not: in the first nothing
// can be found without unpacking it all.
func plainTar(f *os.File) error {
	var begin [6]byte
	n, err := f.ReadAt(begin[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if how := compression(begin[:n]); how != "" {
		return fault.Refusedf("the archive is compressed (%s)", how).Hint("unpack it first: what is read is the tar archive")
	}
	return nil
}

// compression names what content that begins so was compressed with; "" for
// nothing.
func compression(begin []byte) string {
	for magic, name := range map[string]string{
		"\x1f\x8b": "gzip", "\x28\xb5\x2f\xfd": "zstd", "\xfd7zXZ\x00": "xz", "BZh": "bzip2",
	} {
		if bytes.HasPrefix(begin, []byte(magic)) {
			return name
		}
	}
	return ""
}
