package state

// A call is one f of Batch that waits.
type call struct {
	f    func(*Tx) error
	done chan error
}

// Batch is Update for work that comes from many at once: transactions that
// wait at the same time share one write to the disk. f may be run more than
// once and must not count on it; only what its last run did holds.
//
// It is not bbolt's, which works in goroutines where a fault in a damaged file
// ends the process.
func (s *Store) Batch(f func(*Tx) error) error {
	c := &call{f, make(chan error, 1)}
	s.waiting.Lock()
	s.calls = append(s.calls, c)
	s.waiting.Unlock()
	s.turn.Lock() // who comes meanwhile is in the next one's batch
	s.waiting.Lock()
	calls := s.calls
	s.calls = nil
	s.waiting.Unlock()
	s.together(calls)
	s.turn.Unlock()
	return <-c.done
}

// together runs calls in one transaction. One that fails is left out, and run
// alone at the end: what it met may be another's that failed too.
func (s *Store) together(calls []*call) {
	var alone []*call
	for len(calls) > 0 {
		at := -1
		err := s.Update(func(tx *Tx) error {
			for i, c := range calls {
				at = i
				if err := c.f(tx); err != nil {
					return err
				}
			}
			at = -1
			return nil
		})
		if at < 0 {
			for _, c := range calls {
				c.done <- err
			}
			break
		}
		if len(calls) == 1 && len(alone) == 0 {
			calls[0].done <- err
			return
		}
		alone = append(alone, calls[at])
		calls = append(calls[:at:at], calls[at+1:]...)
	}
	for _, c := range alone {
		c.done <- s.Update(c.f)
	}
}
