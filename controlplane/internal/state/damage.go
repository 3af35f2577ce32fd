package state

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"

	"go.etcd.io/bbolt"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// backup is the remedy for a file that cannot be used. It is never set aside
// and begun anew: it holds the key of the mesh.
const backup = "run `mesh-controller restore FILE` with a backup: this file holds the key of the mesh, and nothing else can take its place"

// panicked is what a damaged file did to bbolt: a panic, or a fault in the
// mapping.
type panicked struct{ reason any }

func (p panicked) Error() string { return fmt.Sprint(p.reason) }

// guard turns what a damaged file does to bbolt into an error. It holds for the
// goroutine that calls it.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = panicked{r}
		}
	}()
	return f()
}

// unusable says what is wrong with the file, and tells what was found inside it
// from what the system said about it.
func unusable(path string, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return fault.Failedf("cannot open state %q: %w", path, err)
	}
	return fault.Refusedf("cannot open state %q: it is damaged: %w", path, err).Hint(backup)
}

// whole says whether the file at path can be read from end to end, and has an end.
func whole(tx *bbolt.Tx, path string) error {
	if err := treeOnly(tx, path); err != nil {
		return err
	}
	return readAll(tx)
}

// readAll reads every page there is a way to, so that damage is found now and
// not when a node asks.
func readAll(tx *bbolt.Tx) error {
	return tx.ForEach(func(name []byte, b *bbolt.Bucket) error { return readBucket(b, 0) })
}

// maxDepth bounds buckets in buckets: a damaged page may point at one above it.
const maxDepth = 8

// page is at most one of the kernel's.
const page = 4 << 10

func readBucket(b *bbolt.Bucket, depth int) error {
	if depth > maxDepth {
		return errors.New("its buckets have no end")
	}
	sum := byte(0)
	err := b.ForEach(func(k, v []byte) error {
		if v == nil {
			if in := b.Bucket(k); in != nil {
				return readBucket(in, depth+1)
			}
		}
		for _, s := range [][]byte{k, v} {
			// A page that is not there faults when any byte of it is touched.
			for i := 0; i < len(s); i += page {
				sum ^= s[i]
			}
			if len(s) > 0 {
				sum ^= s[len(s)-1]
			}
		}
		return nil
	})
	runtime.KeepAlive(sum)
	return err
}
