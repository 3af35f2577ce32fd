package supervise

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/internal/slots"
)

// maxExit bounds State.LastExit in the file, in bytes: however it is escaped,
// it fits into a slot.
const maxExit = 500

// ErrDamaged is the error when the state file holds nothing whole.
var ErrDamaged = slots.ErrDamaged

// Number implements slots.Kept.
func (s *State) Number() *uint64 { return &s.Sequence }

// ReadState reads the state in the folder dir of a process. The error is
// fs.ErrNotExist when no shim ever wrote one, and ErrDamaged.
func ReadState(dir string) (State, error) {
	return slots.Read[State](filepath.Join(dir, StateFile))
}

// fit is the state as it is written: the file has its room from the start
// (slots), and no exit may be too long for it.
func (s State) fit() State {
	if len(s.LastExit) > maxExit {
		s.LastExit = strings.ToValidUTF8(s.LastExit[:maxExit], "") + "…"
	}
	return s
}

// save writes the state down.
func (s *State) save(dir string) error {
	short := s.fit()
	err := slots.Write(filepath.Join(dir, StateFile), &short)
	s.Sequence = short.Sequence
	return err
}

// Reset forgets that the process was halted, or ran to completion: the next
// shim begins anew. No shim may live over dir.
func Reset(dir string) error {
	s, err := ReadState(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		return nil
	}
	if err != nil {
		return err
	}
	s.Phase, s.Completed = Stopped, ""
	if s.save(dir) == nil {
		return nil
	}
	// What cannot be written may still go.
	if err := os.Remove(filepath.Join(dir, StateFile)); err != nil {
		return err
	}
	return slots.SyncDir(dir)
}
