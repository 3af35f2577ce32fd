package state

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// The layout of a page (bbolt, internal/common/page.go): a header, then an element
// for each entry.
const (
	pageHeader   = 16 // id (8), flags (2), count (2), overflow (4)
	pageElement  = 16
	bucketHeader = 16 // root (8), sequence (8)
	branchPage   = 0x01
	leafPage     = 0x02
	bucketEntry  = 0x01
)

// treeOnly looks whether the pages of the file at path are a tree. bbolt follows
// whatever a damaged one points at: where that leads back, its way has no end, and
// the memory for it neither.
func treeOnly(tx *bbolt.Tx, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	p := pages{f, int64(tx.DB().Info().PageSize), map[uint64]bool{}}
	return p.walk(uint64(tx.Cursor().Bucket().Root()))
}

type pages struct {
	file io.ReaderAt
	size int64
	seen map[uint64]bool
}

func (p pages) walk(id uint64) error {
	if p.seen[id] {
		return fmt.Errorf("page %d is reached twice", id)
	}
	p.seen[id] = true
	at := int64(id) * p.size
	head := make([]byte, pageHeader)
	if err := p.read(head, at); err != nil {
		return err
	}
	kind := binary.NativeEndian.Uint16(head[8:])
	leaf := kind == leafPage
	elements := make([]byte, int(binary.NativeEndian.Uint16(head[10:]))*pageElement)
	if !leaf && (kind != branchPage || len(elements) == 0) {
		return fmt.Errorf("page %d leads nowhere", id)
	}
	if err := p.read(elements, at+pageHeader); err != nil {
		return err
	}
	for i := 0; i < len(elements); i += pageElement {
		e := elements[i:]
		if !leaf { // pos (4), ksize (4), page (8)
			if err := p.walk(binary.NativeEndian.Uint64(e[8:])); err != nil {
				return err
			}
			continue
		}
		// flags (4), pos (4), ksize (4), vsize (4); pos is from the element.
		if binary.NativeEndian.Uint32(e)&bucketEntry == 0 {
			continue
		}
		bucket := make([]byte, bucketHeader+pageHeader)
		key, size := int64(binary.NativeEndian.Uint32(e[4:])), int64(binary.NativeEndian.Uint32(e[8:]))
		if err := p.read(bucket, at+pageHeader+int64(i)+key+size); err != nil {
			return err
		}
		if child := binary.NativeEndian.Uint64(bucket); child != 0 {
			if err := p.walk(child); err != nil {
				return err
			}
			continue
		}
		// It has no page of its own and is all in this one.
		if binary.NativeEndian.Uint16(bucket[bucketHeader+8:]) != leafPage {
			return fmt.Errorf("page %d has a bucket in it that is none", id)
		}
	}
	return nil
}

func (p pages) read(b []byte, at int64) error {
	if at < 0 {
		return fmt.Errorf("a page is outside of the file")
	}
	if _, err := p.file.ReadAt(b, at); err != nil {
		return fmt.Errorf("a page is outside of the file: %w", err)
	}
	return nil
}
