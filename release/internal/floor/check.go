package floor

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// check reads a tarball as a stranger would and holds every rule of the format.
func check(b []byte, top string) error {
	in := bufio.NewReader(bytes.NewReader(b))
	z, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	z.Multistream(false)
	if !z.ModTime.IsZero() || z.Name != "" || z.Comment != "" || len(z.Extra) > 0 {
		return errors.New("the gzip header says more than nothing")
	}
	r := &reading{tar: tar.NewReader(z), top: top}
	if err := r.all(); err != nil {
		return err
	}
	rest, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	for _, c := range rest {
		if c != 0 {
			return errors.New("bytes after the end of the tar")
		}
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return errors.New("bytes after the end of the gzip stream")
	}
	return nil
}

type reading struct {
	tar      *tar.Reader
	top      string
	manifest pkgbuild.Manifest
	files    int
	last     string
	time     int64
}

func (r *reading) all() error {
	for n := 0; ; n++ {
		h, err := r.tar.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := r.entry(n, h); err != nil {
			return fmt.Errorf("entry %q: %w", h.Name, err)
		}
	}
	if want := len(r.manifest.Members) + 2; r.files != want {
		return fmt.Errorf("%d files, the manifest means %d", r.files, want)
	}
	if r.last != memberBinary {
		return fmt.Errorf("the last file is %q, not the binary", r.last)
	}
	return nil
}

func (r *reading) entry(n int, h *tar.Header) error {
	if n == 0 {
		r.time = h.ModTime.Unix()
	}
	if h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || h.Gname != "root" || h.ModTime.Unix() != r.time ||
		h.Format != tar.FormatUSTAR || h.Linkname != "" {
		return errors.New("owner, time or format is not the common one")
	}
	if h.Typeflag == tar.TypeDir {
		if h.Mode != 0o755 || n == 0 && h.Name != r.top+"/" {
			return errors.New("not the directory that was expected")
		}
		return nil
	}
	name, ok := strings.CutPrefix(h.Name, r.top+"/")
	if h.Typeflag != tar.TypeReg || !ok {
		return errors.New("neither a file below the top folder nor a directory")
	}
	content, err := io.ReadAll(r.tar)
	if err != nil {
		return err
	}
	defer func() { r.files++; r.last = name }()
	switch {
	case r.files == 0 && name == pkgbuild.ManifestName:
		r.manifest, err = pkgbuild.ParseManifest(content)
		return err
	case r.files == 1 && name == pkgbuild.SignatureName:
		return nil
	case r.files < 2:
		return errors.New("the manifest and its signature do not come first")
	}
	m, ok := r.manifest.Member(name)
	sum := sha256.Sum256(content)
	if !ok || m.Size != int64(len(content)) || m.SHA256 != hex.EncodeToString(sum[:]) || int64(m.Mode) != h.Mode {
		return errors.New("it is not what the manifest says")
	}
	return nil
}
