package repository

import (
	"bufio"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
)

// inspect reads the package at path and its signature beside it to their ends,
// and returns what the databases will say of it.
func inspect(path string, o Options) (*entry, fs.FileInfo, error) {
	// A pipe in its place must not hold us up.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, fault.Refusedf("it is not a regular file")
	}
	signature, err := readSignature(path + ".sig")
	if err != nil {
		return nil, nil, err
	}
	if err := o.Verifier.Verify(f, signature); err != nil {
		return nil, nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	sha := sha256.New()
	sums := io.Writer(sha)
	md := md5.New()
	if o.MD5 {
		sums = io.MultiWriter(sha, md)
	}
	size := &counter{}
	r := bufio.NewReaderSize(io.TeeReader(f, io.MultiWriter(sums, size)), 64<<10)
	m, err := arch.ReadMeta(r)
	if err != nil {
		return nil, nil, err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, nil, err
	}
	if size.n != fi.Size() {
		return nil, nil, errors.New("it changes while it is read")
	}
	if want := m.FileName(); filepath.Base(path) != want {
		return nil, nil, fault.Refusedf("its content says that it is %q", want)
	}
	e := &entry{
		Package: Package{Name: m.Name, Version: m.Version, Arch: m.Arch, File: m.FileName(),
			Size: size.n, SHA256: hex.EncodeToString(sha.Sum(nil)), Listed: true},
		signature: signature,
		built:     time.Unix(m.BuildDate, 0),
		files:     writeFiles(m.Files),
	}
	md5sum := ""
	if o.MD5 {
		md5sum = hex.EncodeToString(md.Sum(nil))
	}
	e.desc = writeDesc(m, e.Size, md5sum, e.SHA256, signature)
	// What could not be read back would make the whole database unreadable.
	if _, err := parseEntry(e.folder(), e.desc, e.files); err != nil {
		return nil, nil, fault.Refusedf("the database cannot say it: %w", err)
	}
	return e, fi, nil
}

// readSignature reads the signature of a package.
func readSignature(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Refusedf("it is not signed: there is no %q", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, maxSignature)
}

// readAll reads the regular file f, which may have max bytes.
func readAll(f *os.File, max int64) ([]byte, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fault.Refusedf("%q is not a regular file", f.Name())
	}
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > max {
		return nil, fault.Refusedf("%q has more than %d bytes", f.Name(), max)
	}
	return b, nil
}

type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}
