package installer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"golang.org/x/sys/unix"
)

// trialName is what a binary is called while it is tried, in the directory it
// is to run from. A crash can leave it; the next trial replaces it.
const trialName = ".mesh-host.trial"

// A place is a directory something will be laid in.
type place struct {
	path string
	mode uint32
	// programs run from here.
	programs bool
	// software: it is under the prefix.
	software bool
}

// usable says, without touching anything, whether files can be put at p and run
// there.
func (p place) usable(l layout.Layout) error {
	dir := p.path
	for {
		fi, err := os.Stat(dir)
		if err == nil && !fi.IsDir() {
			return fmt.Errorf("cannot install: %q is not a directory", dir)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot install: %w", err)
		}
		dir = filepath.Dir(dir)
	}
	// access(2) says EROFS to root as well.
	if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return fault.Failedf("cannot install: %q cannot be written: %w", dir, err).Hint("%s", p.instead(l, dir))
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("cannot install: statfs %q: %w", dir, err)
	}
	if p.programs && st.Flags&unix.ST_NOEXEC != 0 {
		return p.noexec(l, dir)
	}
	return nil
}

// noexec refuses a place from which nothing runs. noexec is the mount's alone, so
// a folder that programs run from helps when it is mounted there (mount(8),
// "bind"): the rest of the file system stays as the administrator wants it.
func (p place) noexec(l layout.Layout, dir string) error {
	err := fault.Refusedf("cannot install: no program may run from %q (noexec)", dir)
	switch {
	case p.software:
		return err.Hint("--prefix DIR installs the software elsewhere")
	case !l.IsMachine():
		return err.Hint("name a folder with --root that programs may run from")
	}
	folder := filepath.Join(layout.FloorPrefix, "lib/nox-mesh/launcher")
	return err.Hint("let a folder that programs may run from be mounted there: mkdir -p %[1]s %[2]s; add to /etc/fstab the line \"%[1]s %[2]s none bind 0 0\"; mount %[2]s", folder, p.path)
}

// instead says what helps where dir, which p is to be made in, cannot be
// written.
func (p place) instead(l layout.Layout, dir string) string {
	switch {
	case !l.IsMachine():
		return "name a folder with --root that you may write in"
	case p.software:
		return "--prefix DIR installs the software elsewhere"
	default:
		return fmt.Sprintf("the host needs %q: mount it to be written", dir)
	}
}

// make makes the directory, with exactly its mode whatever the umask, and
// returns those that were not there, parents first.
func (p place) make() ([]string, error) {
	var made []string
	for dir := p.path; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		made = append([]string{dir}, made...)
	}
	if err := durable.MkdirAll(filepath.Dir(p.path), 0o755); err != nil {
		return nil, err
	}
	return made, durable.MkdirAll(p.path, p.mode)
}

// look returns the SHA-256 and the mode of the regular file at path; "" when
// there is none, or something else.
func look(path string) (sum string, mode uint32, err error) {
	f, err := openRegular(path)
	if err != nil {
		if fi, lerr := os.Lstat(path); errors.Is(lerr, fs.ErrNotExist) || lerr == nil && !fi.Mode().IsRegular() {
			return "", 0, nil
		}
		return "", 0, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), uint32(fi.Mode().Perm()), nil
}

// program puts the host's binary at path: copied, hashed on the way, tried
// there, then renamed over what is there, running or not (a write to a running
// binary would be ETXTBSY).
func (f *floor) program(ctx context.Context, path string) error {
	d, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	if err := f.copyBinary(d); err != nil {
		return err
	}
	if err := try(ctx, filepath.Join(d.Name(), trialName), f.manifest.Version); err != nil {
		_ = d.Remove(trialName)
		return err
	}
	return d.Rename(trialName, filepath.Base(path))
}

func (f *floor) copyBinary(d *durable.Dir) error {
	member, _ := f.manifest.Member(memberBinary)
	src, err := openRegular(filepath.Join(f.dir, memberBinary))
	if err != nil {
		return err
	}
	defer src.Close()
	p, err := d.Create(trialName, durable.Perm(0o755))
	if err != nil {
		return err
	}
	defer p.Abort()
	h := sha256.New()
	if _, err := io.Copy(p, io.TeeReader(io.LimitReader(src, member.Size+1), h)); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != member.SHA256 {
		return fault.Refusedf("%q changed since it was verified", src.Name())
	}
	return p.Commit()
}

// try runs the binary at path, which must say that it is version.
func try(ctx context.Context, path, version string) error {
	res, err := child.Run(ctx, child.Command{Path: path, Args: []string{"version"}, Timeout: 20 * time.Second})
	if err != nil {
		return fault.Refusedf("the host does not run in %q: %w", filepath.Dir(path), err).
			Hint("is it mounted noexec, or forbidden by a security module?")
	}
	if version != "" && !slices.Contains(strings.FieldsFunc(string(res.Stdout), outsideVersion), version) {
		return fault.Refusedf("the host in %q says that it is %.80q, not version %s", filepath.Dir(path), res.Stdout, version)
	}
	return nil
}

// outsideVersion reports whether r cannot be part of a version.
func outsideVersion(r rune) bool {
	return !strings.ContainsRune(".+~-", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}
