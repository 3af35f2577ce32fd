package state

// maxEvents bounds the log.
const maxEvents = 10_000

// AddEvent appends to the log and gives e its sequence.
func (t *Tx) AddEvent(e *Event) error {
	return appendBounded(t.tx.Bucket(bucketEvents), maxEvents, "", func(n uint64) ([]byte, error) {
		e.Sequence = n
		return encode(e)
	})
}

// Events returns up to n events, the newest first.
func (t *Tx) Events(n int) ([]*Event, error) { return newest[Event](t.tx.Bucket(bucketEvents), n) }
