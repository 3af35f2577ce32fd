package state

import "encoding/binary"

// maxRefused bounds the records of machines that were refused: whoever has a token
// can be refused as often as he likes.
const maxRefused = 200

// AddRefused counts a node among the refused, as the newest, and forgets the
// oldest beyond those that are kept.
func (t *Tx) AddRefused(node string) error {
	if err := t.RemoveRefused(node); err != nil {
		return err
	}
	b := t.tx.Bucket(bucketRefused)
	n, err := b.NextSequence()
	if err != nil {
		return err
	}
	if err := b.Put(append(binary.BigEndian.AppendUint64(nil, n), node...), []byte("{}")); err != nil {
		return err
	}
	kept := 0
	c := b.Cursor()
	var beyond []string
	for k, _ := c.Last(); k != nil; k, _ = c.Prev() {
		if kept++; kept > maxRefused {
			beyond = append(beyond, string(k[8:]))
		}
	}
	for _, id := range beyond {
		if err := t.forgetRefused(id); err != nil {
			return err
		}
	}
	return nil
}

// RemoveRefused counts a node among them no more.
func (t *Tx) RemoveRefused(node string) error {
	c := t.tx.Bucket(bucketRefused).Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		if string(k[8:]) == node {
			return c.Delete()
		}
	}
	return nil
}

// forgetRefused takes away all there is of one: it was never a node.
func (t *Tx) forgetRefused(id string) error {
	if err := t.RemoveRefused(id); err != nil {
		return err
	}
	n, err := t.Node(id)
	if err != nil || n == nil {
		return err
	}
	e, err := t.Enrolment(n.Enrolment)
	if err != nil {
		return err
	}
	if e != nil && e.Node == id {
		e.Freed = true
		if err := t.PutEnrolment(e); err != nil { // for the list of its token
			return err
		}
		if err := t.tx.Bucket(bucketEnrolments).Delete([]byte(e.ID)); err != nil {
			return err
		}
	}
	for _, x := range []struct {
		bucket []byte
		key    string
	}{{bucketNodeKeys, n.Key}, {bucketInventories, id}, {bucketLocal, id}, {bucketNodes, id}} {
		if err := t.tx.Bucket(x.bucket).Delete([]byte(x.key)); err != nil {
			return err
		}
	}
	return nil
}
