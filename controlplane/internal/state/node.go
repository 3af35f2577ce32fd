package state

import (
	"fmt"
	"time"

	"github.com/nox-mesh/nox-mesh/host/profile"
)

// maxReports bounds what is kept of each node.
const maxReports = 20

// Node returns the node of that id.
func (t *Tx) Node(id string) (*Node, error) { return get[Node](t, bucketNodes, id) }

// NodeByName returns the node of that name.
func (t *Tx) NodeByName(name string) (*Node, error) { return t.indexed(bucketNodeNames, name) }

// NodeByKey returns the node of that key (hex SHA-256 of the SPKI).
func (t *Tx) NodeByKey(key string) (*Node, error) { return t.indexed(bucketNodeKeys, key) }

func (t *Tx) indexed(index []byte, key string) (*Node, error) {
	id := t.tx.Bucket(index).Get([]byte(key))
	if id == nil {
		return nil, nil
	}
	return t.Node(string(id))
}

// Nodes returns all nodes, by id.
func (t *Tx) Nodes() ([]*Node, error) { return all[Node](t, bucketNodes, "") }

// NodesWithPrefix returns the nodes whose id begins so, by id.
func (t *Tx) NodesWithPrefix(prefix string) ([]*Node, error) {
	return all[Node](t, bucketNodes, prefix)
}

// PutNode writes a node. A name or a key that belongs to another node is an
// error, whatever was checked before. The key that it had before is nobody's then.
func (t *Tx) PutNode(n *Node) error {
	old, err := t.Node(n.ID)
	if err != nil {
		return err
	}
	if old != nil && old.Key != n.Key {
		if err := t.tx.Bucket(bucketNodeKeys).Delete([]byte(old.Key)); err != nil {
			return err
		}
	}
	for _, i := range []struct {
		bucket []byte
		key    string
	}{{bucketNodeNames, n.Name}, {bucketNodeKeys, n.Key}} {
		if i.key == "" {
			continue
		}
		b := t.tx.Bucket(i.bucket)
		if id := b.Get([]byte(i.key)); id != nil && string(id) != n.ID {
			return fmt.Errorf("cannot write node %q: %q of %s belongs to node %q", n.ID, i.key, i.bucket, id)
		}
		if err := b.Put([]byte(i.key), []byte(n.ID)); err != nil {
			return err
		}
	}
	return put(t, bucketNodes, n.ID, n)
}

// DropPending removes the record of a machine that was never admitted: it is another
// node now.
func (t *Tx) DropPending(n *Node) error {
	if n.State != Pending && n.State != Refused || n.Name != "" {
		return fmt.Errorf("internal error: node %q is %s and not to be dropped", n.ID, n.State)
	}
	for _, d := range []struct {
		bucket []byte
		key    string
	}{{bucketNodeKeys, n.Key}, {bucketNodes, n.ID}, {bucketLocal, n.ID}, {bucketInventories, n.ID}} {
		if err := t.tx.Bucket(d.bucket).Delete([]byte(d.key)); err != nil {
			return err
		}
	}
	return nil
}

// Declaration returns the bytes of a node's wanted declaration.
func (t *Tx) Declaration(node string) []byte { return t.bytes(bucketDeclarations, node) }

// PutDeclaration writes them.
func (t *Tx) PutDeclaration(node string, doc []byte) error {
	return t.tx.Bucket(bucketDeclarations).Put([]byte(node), doc)
}

// LocalDeclaration returns the declaration a pending node enrolled with, nil
// when there was none.
func (t *Tx) LocalDeclaration(node string) []byte { return t.bytes(bucketLocal, node) }

// PutLocalDeclaration keeps it until the node is admitted; nil forgets it.
func (t *Tx) PutLocalDeclaration(node string, doc []byte) error {
	b := t.tx.Bucket(bucketLocal)
	if doc == nil {
		return b.Delete([]byte(node))
	}
	return b.Put([]byte(node), doc)
}

// Inventory returns what a node said last that it has.
func (t *Tx) Inventory(node string) (*profile.Inventory, error) {
	return get[profile.Inventory](t, bucketInventories, node)
}

// PutInventory writes it.
func (t *Tx) PutInventory(node string, inv *profile.Inventory) error {
	return put(t, bucketInventories, node, inv)
}

// AddReport keeps a report; one whose id is kept already is passed over, and
// then it returns false.
func (t *Tx) AddReport(node string, r *Report) (bool, error) {
	b, err := t.tx.Bucket(bucketReports).CreateBucketIfNotExists([]byte(node))
	if err != nil {
		return false, err
	}
	// The id is in the key, so that a repeated report is found without reading
	// the others.
	c := b.Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		if string(k[8:]) == r.Report.ID {
			return false, nil
		}
	}
	return true, appendBounded(b, maxReports, r.Report.ID, func(uint64) ([]byte, error) { return encode(r) })
}

// Reports returns up to n of a node's reports, the newest first.
func (t *Tx) Reports(node string, n int) ([]*Report, error) {
	return newest[Report](t.tx.Bucket(bucketReports).Bucket([]byte(node)), n)
}

// Seen returns when a node was last heard of, as far as it was written.
func (t *Tx) Seen(node string) time.Time {
	var at time.Time
	if b := t.tx.Bucket(bucketSeen).Get([]byte(node)); b != nil {
		_ = at.UnmarshalText(b) // ours, and only told to people
	}
	return at
}

// PutSeen writes when nodes were last heard of.
func (t *Tx) PutSeen(seen map[string]time.Time) error {
	for node, at := range seen {
		b, err := at.UTC().MarshalText()
		if err != nil {
			return err
		}
		if err := t.tx.Bucket(bucketSeen).Put([]byte(node), b); err != nil {
			return err
		}
	}
	return nil
}
