package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/slots"
)

// goodPrefix begins the name of the copy of an executable that is known to work;
// its digest follows. A copy that is not done is called keepTemp.
const (
	goodPrefix = "good."
	keepTemp   = goodPrefix + "tmp"
)

func goodPath(dir, digest string) string {
	return filepath.Join(dir, goodPrefix+strings.TrimPrefix(digest, "sha256:"))
}

// A kept is what became of making a copy.
type kept struct {
	from   *executable
	digest string
	err    error
}

// prove is the event that the process has lived for the healthy minute with its
// executable: a copy of that is kept, unless there is one. It is made beside, for
// it may be large or its disk slow, and costs the process nothing whatever happens.
// Never a second name of the same file: somebody may write into that.
func (s *shim) prove() {
	if !s.def.Rollback || s.run == nil || s.keeping != nil {
		return
	}
	known := ""
	if g := s.known.Good; g != nil {
		known = g.Digest
		if fi, err := os.Lstat(goodPath(s.dir, known)); err == nil && g.From == s.run.id && fi.Size() == s.run.id.Size {
			return
		}
	}
	from, err := s.run.another()
	if err != nil {
		s.notKept(err)
		return
	}
	done := make(chan kept, 1) // who ends does not wait for a disk that hangs
	s.keeping = done
	go func() {
		digest, err := keep(s.dir, from, known)
		from.close()
		done <- kept{from, digest, err}
	}()
}

// keep makes the copy, durably, and returns the digest of what it is of.
func keep(dir string, from *executable, known string) (string, error) {
	digest, err := from.digest()
	if err != nil {
		return "", err
	}
	if digest == known && whole(dir, digest) == nil {
		return digest, nil
	}
	temp := filepath.Join(dir, keepTemp)
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", err
	}
	again, err := from.copyTo(f)
	if err == nil && again != digest {
		err = errors.New("it was written while it was read")
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, goodPath(dir, digest))
	}
	if err != nil {
		_ = os.Remove(temp) // it may be what fills the disk
		return "", err
	}
	return digest, slots.SyncDir(dir)
}

// whole returns an error unless the copy of that digest is there, undamaged.
func whole(dir, digest string) error {
	e, err := openExecutable(goodPath(dir, digest))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("its copy is gone")
	}
	if err != nil {
		return fmt.Errorf("its copy cannot be read: %w", err)
	}
	defer e.close()
	got, err := e.digest()
	if err != nil {
		return fmt.Errorf("its copy cannot be read: %w", err)
	}
	if got != digest {
		return errors.New("its copy is damaged")
	}
	return nil
}

// wasKept is the event that the copy is made, or is not.
func (s *shim) wasKept(k kept) {
	s.keeping = nil
	if k.err == nil {
		k.err = s.learn(func(r *Rollback) {
			if r.Good == nil || r.Good.Digest != k.digest {
				r.Failed, r.Put = nil, nil
			}
			r.Good = &Good{Digest: k.digest, From: k.from.id, Mode: k.from.mode, UID: k.from.uid, GID: k.from.gid}
			r.Unable = ""
		})
	}
	if k.err != nil {
		s.notKept(k.err)
		return
	}
	s.unkept = ""
	s.sweep()
}

// notKept says once that there is no copy, and has it tried again.
func (s *shim) notKept(err error) {
	if why := err.Error(); s.unkept != why {
		s.unkept = why
		s.out.say("cannot keep a copy of the executable, to be put back when another fails: %s", why)
	}
	s.again = time.Now().Add(10 * s.def.Healthy)
}

// sweep takes away what no one needs: half a copy, and those of before the last.
func (s *shim) sweep() {
	names, err := filepath.Glob(filepath.Join(s.dir, goodPrefix+"*"))
	for _, name := range names {
		if g := s.known.Good; s.def.Rollback && g != nil && name == goodPath(s.dir, g.Digest) {
			continue
		}
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		s.out.say("cannot take away copies of executables: %v", err)
	}
}
