package state

// Published returns what new machines of an architecture are served by a push, nil
// when nothing was pushed for them.
func (t *Tx) Published(architecture string) (*Published, error) {
	return get[Published](t, bucketPublished, architecture)
}

// AllPublished returns what was pushed for new machines, by architecture.
func (t *Tx) AllPublished() ([]*Published, error) { return all[Published](t, bucketPublished, "") }

// PutPublished writes what new machines of its architecture are served.
func (t *Tx) PutPublished(p *Published) error { return put(t, bucketPublished, p.Architecture, p) }
