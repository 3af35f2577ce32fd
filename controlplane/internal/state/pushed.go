package state

func pushedKey(name, architecture string) string { return name + "/" + architecture }

// Pushed returns what was pushed of that name for that architecture.
func (t *Tx) Pushed(name, architecture string) (*Pushed, error) {
	return get[Pushed](t, bucketPushed, pushedKey(name, architecture))
}

// PushedOf returns what was pushed of that name, by architecture.
func (t *Tx) PushedOf(name string) ([]*Pushed, error) {
	return all[Pushed](t, bucketPushed, pushedKey(name, ""))
}

// AllPushed returns all that was pushed, by name and architecture.
func (t *Tx) AllPushed() ([]*Pushed, error) { return all[Pushed](t, bucketPushed, "") }

// PutPushed writes what was pushed, and its document, which is a module's then
// (ModuleDocument, by Key).
func (t *Tx) PutPushed(p *Pushed, doc []byte) error {
	if err := t.tx.Bucket(bucketDocuments).Put([]byte(p.Key()), doc); err != nil {
		return err
	}
	return put(t, bucketPushed, pushedKey(p.Name, p.Architecture), p)
}

// Key is what the bundle and its document are kept under.
func (p *Pushed) Key() string { return pushedKey(p.Name, p.Architecture) }

// DeletePushed removes it.
func (t *Tx) DeletePushed(p *Pushed) error {
	if err := t.tx.Bucket(bucketDocuments).Delete([]byte(p.Key())); err != nil {
		return err
	}
	return t.tx.Bucket(bucketPushed).Delete([]byte(pushedKey(p.Name, p.Architecture)))
}
