package state

import (
	"bytes"
	"slices"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/profile"
)

// maxUnowned bounds what is remembered: twice what a declaration may hold.
const maxUnowned = 2 * declaration.MaxResources

// Unowned returns the keys of what a node said once that it owns and does not say
// any more, without having said that it removed it.
func (t *Tx) Unowned(node string) ([]string, error) {
	keys, err := get[[]string](t, bucketUnowned, node)
	if err != nil || keys == nil {
		return nil, err
	}
	return *keys, nil
}

func (t *Tx) putUnowned(node string, keys []string) error {
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

// TakeInventory keeps what a node says that it has, and works out what it owned once:
// what it does not say any more, unless the newest of its reports that tells of it says
// that it went.
func (t *Tx) TakeInventory(node string, now *profile.Inventory) error {
	before, err := t.Inventory(node)
	if err != nil {
		return err
	}
	lost, err := t.Unowned(node)
	if err != nil {
		return err
	}
	if before != nil {
		lost = slices.Concat(lost, before.Owned)
	}
	known := map[string]bool{}
	for _, key := range now.Owned {
		known[key] = true
	}
	if slices.ContainsFunc(lost, func(key string) bool { return !known[key] }) {
		reports, err := t.Reports(node, maxReports)
		if err != nil {
			return err
		}
		told := map[string]bool{} // by the newest report that says anything of it
		for _, r := range reports {
			for _, key := range Went(&r.Report) {
				known[key] = known[key] || !told[key]
			}
			for _, x := range r.Report.Resources {
				told[x.Key] = true
			}
		}
	}
	lost = slices.DeleteFunc(lost, func(key string) bool {
		seen := known[key]
		known[key] = true
		return seen
	})
	slices.Sort(lost)
	lost = lost[:min(len(lost), maxUnowned)]
	if err := t.putUnowned(node, lost); err != nil {
		return err
	}
	return t.PutInventory(node, now)
}

// Went are the keys of what a report says is not owned any more.
func Went(r *link.Report) []string {
	var out []string
	for _, x := range r.Resources {
		if x.Outcome == declaration.Removed || x.Outcome == declaration.Released {
			out = append(out, x.Key)
		}
	}
	return out
}
