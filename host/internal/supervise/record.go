package supervise

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The state file is two slots of this size, written in turn and in place, so
// that a disk which is full by now has the room already, and a write that is
// cut leaves the state before it whole. A slot is the SHA-256 of what follows,
// in hex, a space, the state as JSON, a line feed, and spaces.
const (
	slotSize = 4096
	sumSize  = 2*sha256.Size + 1
)

// maxExit bounds State.LastExit in the file, in bytes: however it is escaped,
// it fits into a slot.
const maxExit = 500

// ErrDamaged is the error when neither slot of the state file is whole.
var ErrDamaged = errors.New("the state file is damaged")

// ReadState reads the state in the folder dir of a process. The error is
// fs.ErrNotExist when no shim ever wrote one, and ErrDamaged.
func ReadState(dir string) (State, error) {
	var newest State
	for range 3 {
		b, err := readSlots(dir)
		if err != nil {
			return State{}, err
		}
		whole := 0
		for slot := range 2 {
			if s, ok := readSlot(b, slot); ok {
				whole++
				if s.Sequence > newest.Sequence {
					newest = s
				}
			}
		}
		if whole == 2 {
			break
		}
		// One is torn, or is just being written and is whole in a moment.
	}
	if newest.Sequence == 0 {
		return State{}, ErrDamaged
	}
	return newest, nil
}

func readSlots(dir string) ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(dir, StateFile), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 2*slotSize))
}

// readSlot reads one slot of the file b.
func readSlot(b []byte, slot int) (s State, ok bool) {
	if len(b) < (slot+1)*slotSize {
		return s, false
	}
	b = b[slot*slotSize : (slot+1)*slotSize]
	sum := sha256.Sum256(b[sumSize:])
	if string(b[:sumSize]) != hex.EncodeToString(sum[:])+" " {
		return s, false
	}
	err := json.Unmarshal(b[sumSize:], &s)
	return s, err == nil && s.Sequence > 0 && s.Sequence%2 == uint64(slot)
}

// slot is the state as it is written.
func (s State) slot() ([]byte, error) {
	if len(s.LastExit) > maxExit {
		s.LastExit = strings.ToValidUTF8(s.LastExit[:maxExit], "") + "…"
	}
	content, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	b := bytes.Repeat([]byte(" "), slotSize)
	if n := copy(b[sumSize:], append(content, '\n')); n <= len(content) {
		return nil, fmt.Errorf("internal error: a state of %d bytes", len(content))
	}
	sum := sha256.Sum256(b[sumSize:])
	copy(b, hex.EncodeToString(sum[:]))
	return b, nil
}

// save writes the state in place of the older of the two. Its Sequence grows
// only when that is durable, so a write that failed is tried again over the
// same slot and never costs the last good one.
func (s *State) save(dir string) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, StateFile), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	there, err := io.ReadAll(io.LimitReader(f, 2*slotSize))
	if err != nil {
		return err
	}
	next := *s
	next.Sequence++
	at := int(next.Sequence % 2)
	if _, ok := readSlot(there, 1-at); !ok {
		// It is new, or somebody's hand was in it: both slots get their blocks.
		next.Sequence++
		if err := next.write(f); err != nil {
			return err
		}
		next.Sequence++
	}
	if err := next.write(f); err != nil {
		return err
	}
	if len(there) == 0 {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	s.Sequence = next.Sequence
	return nil
}

func (s State) write(f *os.File) error {
	b, err := s.slot()
	if err == nil {
		_, err = f.WriteAt(b, int64(s.Sequence%2)*slotSize)
	}
	if err == nil {
		err = f.Sync()
	}
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
	return syncDir(dir)
}
