package state

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// A Tx is one transaction. What a getter returns is a copy; a record that is
// not there is nil, and no error.
type Tx struct{ tx *bbolt.Tx }

// OnCommit calls f once all of the transaction is on disk, and never when it is
// taken back.
func (t *Tx) OnCommit(f func()) { t.tx.OnCommit(f) }

func get[T any](t *Tx, bucket []byte, key string) (*T, error) {
	b := t.tx.Bucket(bucket).Get([]byte(key))
	if b == nil {
		return nil, nil
	}
	return decoded[T](bucket, key, b)
}

func decoded[T any](bucket []byte, key string, b []byte) (*T, error) {
	v := new(T)
	if err := decode(b, v); err != nil {
		return nil, fmt.Errorf("cannot read %q of %s: %w", key, bucket, err)
	}
	return v, nil
}

func put(t *Tx, bucket []byte, key string, v any) error {
	b, err := encode(v)
	if err != nil {
		return fmt.Errorf("cannot write %q of %s: %w", key, bucket, err)
	}
	return t.tx.Bucket(bucket).Put([]byte(key), b)
}

// all returns the records of a bucket whose keys begin with prefix, by key.
func all[T any](t *Tx, bucket []byte, prefix string) ([]*T, error) {
	var out []*T
	c := t.tx.Bucket(bucket).Cursor()
	for k, b := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, b = c.Next() {
		v, err := decoded[T](bucket, string(k), b)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (t *Tx) bytes(bucket []byte, key string) []byte {
	return bytes.Clone(t.tx.Bucket(bucket).Get([]byte(key)))
}

// appendBounded puts v under the next sequence of b, with a suffix to find it
// by, and drops the oldest beyond keep.
func appendBounded(b *bbolt.Bucket, keep int, suffix string, v func(sequence uint64) ([]byte, error)) error {
	n, err := b.NextSequence()
	if err != nil {
		return err
	}
	doc, err := v(n)
	if err != nil {
		return err
	}
	if err := b.Put(append(binary.BigEndian.AppendUint64(nil, n), suffix...), doc); err != nil {
		return err
	}
	// One is added at a time and the numbers have no holes, so what is to go is
	// at the front.
	c := b.Cursor()
	for k, _ := c.First(); k != nil && binary.BigEndian.Uint64(k)+uint64(keep) <= n; k, _ = c.First() {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// newest returns up to n records of b, the newest first.
func newest[T any](b *bbolt.Bucket, n int) ([]*T, error) {
	var out []*T
	if b == nil {
		return nil, nil
	}
	c := b.Cursor()
	for k, v := c.Last(); k != nil && len(out) < n; k, v = c.Prev() {
		r := new(T)
		if err := decode(v, r); err != nil {
			return nil, fmt.Errorf("cannot read record %d: %w", binary.BigEndian.Uint64(k), err)
		}
		out = append(out, r)
	}
	return out, nil
}
