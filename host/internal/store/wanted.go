package store

import (
	"bytes"
	"encoding/json"
	"time"

	"go.etcd.io/bbolt"
)

// Source says where a declaration came from.
type Source string

// The sources. They share one door, and one order.
const (
	SourceBundle Source = "bundle"
	SourceFile   Source = "file"
	SourceLink   Source = "link"
	// SourceRetire is the last declaration of a machine that is retired: nothing.
	// Until its identity is gone, nothing of its mesh comes after it.
	SourceRetire Source = "retire"
)

// Wanted is the declaration in force.
type Wanted struct {
	Source Source `json:"source"`
	// Mesh and Epoch come in the link's message, never in the document.
	Mesh  string `json:"mesh,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
	// Node is the id of the node it was made for: one that enrols anew is
	// another node, with another count.
	Node string `json:"node,omitempty"`
	// Enrolment is the id of the enrolment by which the machine was that node: it may
	// leave, and become the same node again.
	Enrolment string `json:"enrolment,omitempty"`
	// Generation and Name are the document's.
	Generation uint64 `json:"generation"`
	Name       string `json:"name"`
	// Digest is that of the document, "sha256:…".
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
	// Bundle is the digest of the bundle it came in, if it did.
	Bundle string `json:"bundle,omitempty"`
	// Leave: what it does not name is released, not removed.
	Leave bool `json:"leave,omitempty"`
	// Dismissed: of the last declaration, that the mesh sent it and no person asked
	// for it here.
	Dismissed bool `json:"dismissed,omitempty"`
	// Document is the declaration, as it was written.
	Document []byte `json:"-"`
}

var (
	keyWanted   = []byte("about")
	keyDocument = []byte("document")
)

// Wanted returns the declaration in force, or nil.
func (s *Store) Wanted() (*Wanted, error) { return s.wanted(true) }

// About is Wanted without the document, which may be large.
func (s *Store) About() (*Wanted, error) { return s.wanted(false) }

func (s *Store) wanted(document bool) (*Wanted, error) {
	var w *Wanted
	err := s.view("the declaration", func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketWanted)
		v := b.Get(keyWanted)
		if v == nil || s.bad.has(bucketWanted, keyWanted) {
			return nil
		}
		w = &Wanted{}
		if document {
			w.Document = bytes.Clone(b.Get(keyDocument))
		}
		return json.Unmarshal(v, w)
	})
	return w, err
}

// Accept makes w the declaration in force.
func (s *Store) Accept(w Wanted) error {
	return s.update("the declaration", func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketWanted)
		if err := b.Put(keyDocument, w.Document); err != nil {
			return err
		}
		return put(b, keyWanted, w)
	})
}
