package state

import (
	"cmp"
	"slices"
	"time"
)

// maxOrphans bounds those that are kept; who was not heard of for longest goes.
const maxOrphans = 1000

// An Orphan is a node that is known by its certificate alone: this mesh's root made
// it, and the state, which was restored, is from before. What the node says of itself
// is a claim.
type Orphan struct {
	// ID and Key are those of the certificate.
	ID        string `json:"id"`
	Key       string `json:"key"`
	PublicKey []byte `json:"public_key"`
	// Name is what the node says it is called.
	Name string `json:"name,omitempty"`
	// From is where it came from last.
	From  string    `json:"from"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Orphan returns the orphan of that id.
func (t *Tx) Orphan(id string) (*Orphan, error) { return get[Orphan](t, bucketOrphans, id) }

// Orphans returns all orphans, by id, but for those whose key a node has by now.
func (t *Tx) Orphans() ([]*Orphan, error) { return t.orphans("") }

// OrphansWithPrefix returns those whose id begins so.
func (t *Tx) OrphansWithPrefix(prefix string) ([]*Orphan, error) { return t.orphans(prefix) }

func (t *Tx) orphans(prefix string) ([]*Orphan, error) {
	all, err := all[Orphan](t, bucketOrphans, prefix)
	return slices.DeleteFunc(all, func(o *Orphan) bool { return t.tx.Bucket(bucketNodeKeys).Get([]byte(o.Key)) != nil }), err
}

// PutOrphan writes an orphan.
func (t *Tx) PutOrphan(o *Orphan) error {
	if t.tx.Bucket(bucketOrphans).Get([]byte(o.ID)) == nil {
		all, err := all[Orphan](t, bucketOrphans, "")
		if err != nil {
			return err
		}
		if len(all) >= maxOrphans {
			oldest := slices.MinFunc(all, func(a, b *Orphan) int { return cmp.Or(a.Last.Compare(b.Last), cmp.Compare(a.ID, b.ID)) })
			if err := t.DeleteOrphan(oldest.ID); err != nil {
				return err
			}
		}
	}
	return put(t, bucketOrphans, o.ID, o)
}

// DeleteOrphan forgets one.
func (t *Tx) DeleteOrphan(id string) error { return t.tx.Bucket(bucketOrphans).Delete([]byte(id)) }
