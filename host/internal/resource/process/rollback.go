package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
)

// What the shims know of executables is asked here by the path of a program and its
// content, which is how the kind "file" knows what it lays there. Nothing is asked
// of a shim: the folders say it, also while none lives.

// A verdict is what the shim of a process knows of its program.
type verdict struct {
	process string
	supervise.Rollback
}

// verdicts are those about the program at path. One that cannot be read says
// nothing, as none would.
func (k *Kind) verdicts(path string) []verdict {
	folders, err := os.ReadDir(k.layout.Processes())
	if err != nil {
		return nil
	}
	var out []verdict
	for _, f := range folders {
		if !supervise.ValidName(f.Name()) {
			continue
		}
		if r, err := supervise.ReadRollback(k.dir(f.Name())); err == nil && r.Of(path) {
			out = append(out, verdict{f.Name(), r})
		}
	}
	return out
}

// Failed says how the content failed here as the program at path, or "" when it did
// not, or nobody knows any more.
func (k *Kind) Failed(path string, d digest.Digest) (why string) {
	for _, v := range k.verdicts(path) {
		if f := v.Find(string(d)); f != nil {
			return fmt.Sprintf("failed here %s as process %q (%s)", times(f.Failures), v.process, f.LastExit)
		}
	}
	return ""
}

// Restored reports whether the content was put at path by a shim, in place of what
// failed or was gone: it is then nobody else's work. Of a process that was removed
// it is known as long as this Kind lives.
func (k *Kind) Restored(path string, d digest.Digest) bool {
	for _, v := range k.verdicts(path) {
		if v.restored() == string(d) {
			return true
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return d != "" && k.restored[supervise.Digest([]byte(path))] == string(d)
}

// restored is the digest of what was put back and is there still, or "".
func (v verdict) restored() string {
	if v.Put == nil || v.Good == nil {
		return ""
	}
	return v.Good.Digest
}

// remember keeps what Restored needs of a process that is about to be removed: its
// program is a file that goes after it.
func (k *Kind) remember(name string) {
	r, err := supervise.ReadRollback(k.dir(name))
	if err != nil {
		return
	}
	if d := (verdict{name, r}).restored(); d != "" {
		k.mu.Lock()
		if k.restored == nil {
			k.restored = map[string]string{}
		}
		k.restored[r.Program] = d
		k.mu.Unlock()
	}
}

// rollback reads what the shim knows of the executables; none is no error, and what
// is damaged its shim writes again.
func (k *Kind) rollback(name string) (supervise.Rollback, error) {
	r, err := supervise.ReadRollback(k.dir(name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, supervise.ErrDamaged) {
		err = nil
	}
	return r, err
}

// rolledBack is what is worth knowing of a process that runs by the executable
// before the declared one, or "".
func (v view) rolledBack() string {
	if !v.def.Rollback || !v.known.Back() || !v.stays {
		return ""
	}
	f := v.known.Failed[0]
	return fmt.Sprintf("runs the executable before %s, which failed here %s: %s (since %s)", short(f.Digest), times(f.Failures), f.LastExit, f.At.Format("2006-01-02 15:04:05"))
}

// notRolledBack is what there is to say of the executable before, of a process that
// is halted, or "".
func (v view) notRolledBack() string {
	switch {
	case !v.def.Rollback:
		return ""
	case v.known.Unable != "":
		return "the executable before it cannot be put back: " + v.known.Unable
	case v.known.Back():
		f := v.known.Failed[0]
		return fmt.Sprintf("that is the executable before %s, put back when that failed as well (%s)", short(f.Digest), f.LastExit)
	}
	return ""
}

// short is a digest for people.
func short(d string) string {
	const enough = len("sha256:") + 12
	if len(d) <= enough {
		return d
	}
	return d[:enough] + "…"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
