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

// PutPushed writes what was pushed.
func (t *Tx) PutPushed(p *Pushed) error {
	return put(t, bucketPushed, pushedKey(p.Name, p.Architecture), p)
}

// DeletePushed removes it.
func (t *Tx) DeletePushed(p *Pushed) error {
	return t.tx.Bucket(bucketPushed).Delete([]byte(pushedKey(p.Name, p.Architecture)))
}
