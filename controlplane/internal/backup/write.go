package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Write writes the files that m names, which open opens, as they are in an open
// backup: what closes it is around w. It fills in the format.
func Write(w io.Writer, m *Manifest, open func(File) (io.ReadCloser, error)) error {
	m.Format, m.Version = format, Version
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(b) > maxManifest {
		return fault.Refusedf("its list of files would have more than %d bytes", maxManifest)
	}
	if _, err := parse(b); err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	t := tar.NewWriter(w)
	header := func(name string, size int64) error {
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: m.Made})
	}
	if err := header(manifestName, int64(len(b))); err != nil {
		return err
	}
	if _, err := t.Write(b); err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := header(f.Name, f.Size); err != nil {
			return err
		}
		if err := copyFile(t, f, open); err != nil {
			return err
		}
	}
	return t.Close()
}

func copyFile(w io.Writer, f File, open func(File) (io.ReadCloser, error)) error {
	in, err := open(f)
	if err != nil {
		return err
	}
	defer in.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(in, f.Size))
	if err != nil {
		return err
	}
	if n != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.sum() {
		if hex, ok := f.Digest(); ok {
			return fault.Refusedf("content sha256:%s is damaged on this machine", hex).
				Hint("push the bundle that brings it again, or leave all content out with --without-content")
		}
		return fault.Failedf("%q changed while it was read", f.Name)
	}
	return nil
}
