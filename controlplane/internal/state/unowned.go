package state

import "bytes"

// Unowned returns the keys of what a node said once that it owns and does not say
// any more, without having said that it removed it.
func (t *Tx) Unowned(node string) ([]string, error) {
	keys, err := get[[]string](t, bucketUnowned, node)
	if err != nil || keys == nil {
		return nil, err
	}
	return *keys, nil
}

// PutUnowned writes them.
func (t *Tx) PutUnowned(node string, keys []string) error {
	if len(keys) == 0 {
		return t.tx.Bucket(bucketUnowned).Delete([]byte(node))
	}
	return put(t, bucketUnowned, node, keys)
}

// Leavings are what was declared for a node and is not any more, by key, as long as
// the node has not said that it is gone: each a declaration of that one resource.
func (t *Tx) Leavings(node string) map[string][]byte {
	out := map[string][]byte{}
	b := t.tx.Bucket(bucketLeavings).Bucket([]byte(node))
	if b == nil {
		return out
	}
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		out[string(k)] = bytes.Clone(v)
	}
	return out
}

// PutLeaving adds one.
func (t *Tx) PutLeaving(node, key string, doc []byte) error {
	b, err := t.tx.Bucket(bucketLeavings).CreateBucketIfNotExists([]byte(node))
	if err != nil {
		return err
	}
	return b.Put([]byte(key), doc)
}

// DropLeavings forgets those of these keys.
func (t *Tx) DropLeavings(node string, keys ...string) error {
	b := t.tx.Bucket(bucketLeavings).Bucket([]byte(node))
	for _, k := range keys {
		if b == nil || b.Get([]byte(k)) == nil {
			continue
		}
		if err := b.Delete([]byte(k)); err != nil {
			return err
		}
	}
	return nil
}
