package state

// Mesh returns who this control plane is, nil before its first start.
func (t *Tx) Mesh() (*Mesh, error) { return get[Mesh](t, bucketMesh, "mesh") }

// PutMesh writes it.
func (t *Tx) PutMesh(m *Mesh) error { return put(t, bucketMesh, "mesh", m) }

// Addresses returns the addresses ("HOST:PORT") the operator gave, sorted.
func (t *Tx) Addresses() []string {
	var out []string
	c := t.tx.Bucket(bucketAddresses).Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		out = append(out, string(k))
	}
	return out
}

// AddAddress adds one; it reports whether it is new.
func (t *Tx) AddAddress(a string) (bool, error) {
	b := t.tx.Bucket(bucketAddresses)
	if b.Get([]byte(a)) != nil {
		return false, nil
	}
	return true, b.Put([]byte(a), []byte("{}"))
}

// RemoveAddress removes one; it reports whether it was there.
func (t *Tx) RemoveAddress(a string) (bool, error) {
	b := t.tx.Bucket(bucketAddresses)
	if b.Get([]byte(a)) == nil {
		return false, nil
	}
	return true, b.Delete([]byte(a))
}
