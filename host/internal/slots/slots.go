// Package slots is a small file that is overwritten in place: the state of the
// launcher and of each shim.
//
// A file that is replaced by rename needs room for the new one, which a full
// disk has not. This one has its room from the first writing on: two slots of
// Size, written in turn, so that a write that is cut leaves what was there
// before it whole. A slot is the SHA-256 of what follows, in hex, a space, what
// is kept as JSON, a line feed, and spaces. The slot is chosen by the lowest
// bit of the sequence, a number in the JSON that grows with each writing.
//
// What a newer version wrote is read by an older one, which leaves out what it
// does not know; so what is added must be left out of the JSON when it says
// nothing new.
//
// It stands on the standard library alone, like those that use it.
package slots

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Size is that of a slot, and bounds what is kept, in bytes.
const Size = 4096

// sumSize is the digest and a space.
const sumSize = 2*sha256.Size + 1

// ErrDamaged is the error when neither slot of a file is whole.
var ErrDamaged = errors.New("the state file is damaged")

// A Kept is what a file keeps: a pointer to something that JSON can write.
type Kept[T any] interface {
	*T
	// Number is where its sequence is: 0 before it was written.
	Number() *uint64
}

// Read reads what the file at path keeps. The error is fs.ErrNotExist when
// there is none, and ErrDamaged.
func Read[T any, P Kept[T]](path string) (T, error) {
	var newest, none T
	for range 3 {
		b, err := both(path)
		if err != nil {
			return none, err
		}
		whole := 0
		for slot := range 2 {
			v, ok := Decode[T, P](b, slot)
			if !ok {
				continue
			}
			whole++
			if *P(&v).Number() > *P(&newest).Number() {
				newest = v
			}
		}
		if whole == 2 {
			break
		}
		// One is torn, or is just being written and is whole in a moment.
	}
	if *P(&newest).Number() == 0 {
		return none, ErrDamaged
	}
	return newest, nil
}

func both(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(err, ErrDamaged)
	}
	return io.ReadAll(io.LimitReader(f, 2*Size))
}

// Decode reads one slot, 0 or 1, of the file's content b.
func Decode[T any, P Kept[T]](b []byte, slot int) (v T, ok bool) {
	if len(b) < (slot+1)*Size {
		return v, false
	}
	b = b[slot*Size : (slot+1)*Size]
	sum := sha256.Sum256(b[sumSize:])
	if string(b[:sumSize]) != hex.EncodeToString(sum[:])+" " {
		return v, false
	}
	err := json.Unmarshal(b[sumSize:], &v)
	n := *P(&v).Number()
	return v, err == nil && n > 0 && n%2 == uint64(slot)
}

// Encode is v as a slot. The error is of one that does not fit.
func Encode[T any](v T) ([]byte, error) {
	content, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	b := bytes.Repeat([]byte(" "), Size)
	if n := copy(b[sumSize:], append(content, '\n')); n <= len(content) {
		return nil, fmt.Errorf("internal error: a state of %d bytes", len(content))
	}
	sum := sha256.Sum256(b[sumSize:])
	copy(b, hex.EncodeToString(sum[:]))
	return b, nil
}

// Write writes v in place of the older of the two, durably; it is then the newest,
// whatever its sequence was. A write that fails never costs the last good one. A link
// at path is not followed.
func Write[T any, P Kept[T]](path string, v *T) (err error) {
	// Without O_NONBLOCK a fifo would wait for its other end.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%q is no regular file", path))
	}
	there, err := io.ReadAll(io.LimitReader(f, 2*Size))
	if err != nil {
		return err
	}
	next := *v
	n := P(&next).Number()
	for slot := range 2 {
		// A writing that failed half way may have left one that is newer.
		if old, ok := Decode[T, P](there, slot); ok {
			*n = max(*n, *P(&old).Number())
		}
	}
	*n++
	if _, ok := Decode[T, P](there, 1-int(*n%2)); !ok {
		// It is new, or somebody's hand was in it: both slots get their blocks.
		*n++
		if err := write(f, next, *n); err != nil {
			return err
		}
		*n++
	}
	if err := write(f, next, *n); err != nil {
		return err
	}
	if len(there) == 0 {
		if err := SyncDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	*P(v).Number() = *n
	return nil
}

func write[T any](f *os.File, v T, sequence uint64) error {
	b, err := Encode(v)
	if err == nil {
		_, err = f.WriteAt(b, int64(sequence%2)*Size)
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// SyncDir makes the entries of a directory durable.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
