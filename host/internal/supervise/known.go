package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/slots"
)

// Bounds of a Rollback, so that it fits into a slot however it is escaped.
const (
	// maxFailed is how many executables that failed are remembered.
	maxFailed = 3
	// maxWords bounds each text of it, in bytes.
	maxWords = 100
)

// A Rollback is what a shim knows of the executables of its process. It is a file
// of its own, so that the state of a process without is what it always was.
type Rollback struct {
	// Sequence grows with each that is written to the file.
	Sequence uint64 `json:"sequence"`
	// Program is the Digest of the path that all of it is about.
	Program string `json:"program"`
	// Good is what the process lived with for the healthy minute last: there is a
	// copy of it.
	Good *Good `json:"good,omitempty"`
	// Failed are what was replaced by Good since, the last one first. They are
	// forgotten when another lives for the healthy minute.
	Failed []Failure `json:"failed,omitempty"`
	// Returning is what Good is just taking the place of: a digest, or absent.
	Returning string `json:"returning,omitempty"`
	// Put is the file that was put back, while that is what is started.
	Put *identity `json:"put,omitempty"`
	// Unable says why Good could not be put back at the last failure.
	Unable string `json:"unable,omitempty"`
}

// absent is in Returning when there was nothing at the path.
const absent = "absent"

// A Good is an executable that is known to work.
type Good struct {
	Digest string `json:"digest"`
	// From is the file it was copied from.
	From identity `json:"from"`
	// Mode, UID and GID are what the file had, for a path where nothing is.
	Mode uint32 `json:"mode"`
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
}

// A Failure is an executable that failed here.
type Failure struct {
	Digest string `json:"digest"`
	// Failures in a row, and how the last one ended.
	Failures int       `json:"failures"`
	LastExit string    `json:"last_exit"`
	At       time.Time `json:"at"`
}

// Number implements slots.Kept.
func (r *Rollback) Number() *uint64 { return &r.Sequence }

// Of reports whether it is about the program at path.
func (r *Rollback) Of(path string) bool { return r.Program == Digest([]byte(path)) }

// Back reports whether the process is started from what was put back in place of
// what failed.
func (r *Rollback) Back() bool { return r.Put != nil && r.Good != nil && len(r.Failed) > 0 }

// There reports whether what was put back is what the path leads to, still.
func (r *Rollback) There(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && r.Put != nil && identityOf(fi).content() == r.Put.content()
}

// Find returns what is known of the failure of an executable, or nil.
func (r *Rollback) Find(digest string) *Failure {
	for i := range r.Failed {
		if r.Failed[i].Digest == digest {
			return &r.Failed[i]
		}
	}
	return nil
}

func (r *Rollback) add(f Failure) {
	failed := []Failure{f}
	for _, old := range r.Failed {
		if old.Digest != f.Digest && len(failed) < maxFailed {
			failed = append(failed, old)
		}
	}
	r.Failed = failed
}

func (r *Rollback) drop(digest string) {
	var failed []Failure
	for _, f := range r.Failed {
		if f.Digest != digest {
			failed = append(failed, f)
		}
	}
	r.Failed = failed
}

// ReadRollback reads what the shim of the folder dir knows of its executables. The
// error is fs.ErrNotExist when it was never told to, and ErrDamaged.
func ReadRollback(dir string) (Rollback, error) {
	return slots.Read[Rollback](filepath.Join(dir, RollbackFile))
}

// save writes it down. It has its room from the start, as the state has.
func (r *Rollback) save(dir string) error {
	short := *r
	short.Unable = words(r.Unable)
	short.Failed = nil
	for _, f := range r.Failed {
		f.LastExit = words(f.LastExit)
		short.Failed = append(short.Failed, f)
	}
	err := slots.Write(filepath.Join(dir, RollbackFile), &short)
	r.Sequence = short.Sequence
	return err
}

func words(s string) string {
	if len(s) > maxWords {
		return strings.ToValidUTF8(s[:maxWords], "") + "…"
	}
	return s
}
