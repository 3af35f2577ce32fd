package unit

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// A unit that runs is reloaded or restarted when its files have changed. Whether
// that was done is nothing the machine shows, and a host can be killed between
// the two: a mark in the host's state, made before the files are touched, says
// that it is due. It counts for the boot it was made in; after that nothing runs
// that was there before.

func (k *Kind) pendingMark(name string) string {
	return filepath.Join(k.Layout.State(), "unit", name)
}

// bootID is where the kernel says which boot this is (random(4)).
const bootID = "/proc/sys/kernel/random/boot_id"

// pending reports whether a change of the unit's files is not in effect yet.
func (k *Kind) pending(name string) (bool, error) {
	mark, err := os.ReadFile(k.pendingMark(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	boot, err := os.ReadFile(bootID)
	return bytes.Equal(mark, boot), err
}

func (k *Kind) setPending(name string) error {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return err
	}
	mark := k.pendingMark(name)
	if err := durable.MkdirAll(filepath.Dir(mark), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(mark, boot, 0o600)
}

func (k *Kind) clearPending(name string) error {
	mark := k.pendingMark(name)
	if _, err := os.Lstat(mark); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return durable.Remove(mark)
}
