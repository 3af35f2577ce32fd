package launcher

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/nox-mesh/nox-mesh/host/internal/slots"
)

// maxProgram bounds a program, in bytes: to read what is larger would take longer
// than the service manager waits for a start.
const maxProgram = 1 << 30

// open opens a program; what is no file is none, and is not waited for.
func open(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	fi, err := f.Stat()
	switch {
	case err != nil:
	case !fi.Mode().IsRegular():
		err = errors.New("it is no file")
	case fi.Size() > maxProgram:
		err = fmt.Errorf("it has %d bytes, which no host has", fi.Size())
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, fi.Size(), nil
}

// compare reports whether the programs have the same content, and if not the
// digest of b's.
func compare(a, b string) (same bool, sum string, err error) {
	fa, size, err := open(a)
	if err != nil {
		return false, "", err
	}
	defer fa.Close()
	fb, other, err := open(b)
	if err != nil {
		return false, "", err
	}
	defer fb.Close()
	if size == other {
		if same, err = sameBytes(fa, fb); same || err != nil {
			return same, "", err
		}
		if _, err := fb.Seek(0, io.SeekStart); err != nil {
			return false, "", err
		}
	}
	sum, err = hash(io.LimitReader(fb, other)) // it may be growing
	return false, sum, err
}

// digest is that of the program at path.
func digest(path string) (string, error) {
	f, _, err := open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return hash(f)
}

func hash(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func sameBytes(a, b io.Reader) (bool, error) {
	x, y := make([]byte, 256<<10), make([]byte, 256<<10)
	for {
		n, err := io.ReadFull(a, x)
		m, berr := io.ReadFull(b, y)
		if !bytes.Equal(x[:n], y[:m]) {
			return false, nil
		}
		for _, e := range []error{err, berr} {
			if e != nil && !errors.Is(e, io.EOF) && !errors.Is(e, io.ErrUnexpectedEOF) {
				return false, e
			}
		}
		if err != nil || berr != nil {
			return true, nil
		}
	}
}

// replace makes the file at path what from is: the old or the new, whatever
// happens, with nothing left beside it but by a crash, which the next one takes
// over. A symlink at path is replaced itself.
func replace(from, path string) error {
	src, _, err := open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".back")
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	dst, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err == nil {
		err = dst.Chmod(0o755)
	}
	if err == nil {
		err = dst.Sync()
	}
	if err = errors.Join(err, dst.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return slots.SyncDir(filepath.Dir(path))
}
