package installer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
	"golang.org/x/sys/unix"
)

// The members of a floor tarball an install needs.
const (
	memberBinary = "mesh-host"
	memberConfig = "host.toml"
	memberTrust  = "share/nox-mesh/trust"
)

// memberPages are what a tarball may hold for people and their shells; they lie
// below the prefix as they lie in the tarball.
var memberPages = []string{
	"share/man/man8/mesh-host.8",
	"share/bash-completion/completions/mesh-host",
	"share/zsh/site-functions/_mesh-host",
	"share/fish/vendor_completions.d/mesh-host.fish",
}

// maxSmall bounds every file that is read whole, in bytes.
const maxSmall = 1 << 20

// A floor is an unpacked tarball. Its small members are in memory from the
// moment they were verified; the binary is hashed again as it is copied, so
// what is installed is what was verified, whoever else may write in the folder.
type floor struct {
	dir      string
	manifest pkgbuild.Manifest
	small    map[string][]byte
}

// openRegular opens a regular file for reading, never through a symlink in its
// last part and never blocking on a fifo.
func openRegular(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readSmall reads a regular file of at most maxSmall bytes.
func readSmall(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err == nil && len(b) > maxSmall {
		err = fmt.Errorf("%q has more than %d bytes", path, maxSmall)
	}
	return b, err
}

// readFloor reads the folder against the manifest, whose signature has been
// verified.
func readFloor(dir string, m pkgbuild.Manifest) (*floor, error) {
	if want := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]; m.Architecture != want {
		return nil, fault.Refusedf("cannot install: the tarball is for %q, this machine is %q", m.Architecture, want)
	}
	f := &floor{dir: dir, manifest: m, small: map[string][]byte{}}
	for _, member := range m.Members {
		if err := f.read(member); err != nil {
			return nil, fault.Refusedf("cannot install: the unpacked tarball is damaged: %w", err).
				Hint("fetch and unpack it again")
		}
	}
	for _, name := range []string{memberBinary, memberConfig} {
		if _, ok := m.Member(name); !ok {
			return nil, fault.Refusedf("cannot install: the tarball holds no %q", name)
		}
	}
	return f, nil
}

// read checks one member; it keeps the content of all but the binary.
func (f *floor) read(m pkgbuild.Member) error {
	file, err := openRegular(filepath.Join(f.dir, m.Path))
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	var keep []byte
	var n int64
	if m.Path == memberBinary {
		n, err = io.Copy(sum, io.LimitReader(file, m.Size+1))
	} else {
		if m.Size > maxSmall {
			return fmt.Errorf("%q has more than %d bytes", m.Path, maxSmall)
		}
		keep, err = io.ReadAll(io.LimitReader(file, m.Size+1))
		n = int64(len(keep))
		sum.Write(keep)
	}
	if err != nil {
		return err
	}
	if n != m.Size {
		return fmt.Errorf("%q does not have %d bytes", m.Path, m.Size)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != m.SHA256 {
		return fmt.Errorf("%q has SHA-256 %s, the manifest says %s", m.Path, got, m.SHA256)
	}
	f.small[m.Path] = keep
	return nil
}
