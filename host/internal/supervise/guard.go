package supervise

import "fmt"

// guard is the event that it is time to look after the files, which are
// anybody's who is root: a lock that nobody would find is taken anew, and a
// state that could not be written, or was damaged since, is written again.
func (s *shim) guard() {
	if s.lost != nil {
		return
	}
	if err := s.lock.renew(); err != nil {
		// Nobody would know of what runs here: it must not go on for ever.
		s.lost = fmt.Errorf("cannot go on without the folder %q: %w", s.dir, err)
		s.out.say("%v", s.lost)
		s.stopAsked()
		return
	}
	there, err := ReadState(s.dir)
	if err == nil && there.Sequence == s.state.Sequence {
		return
	}
	if there.Sequence > s.state.Sequence+1 {
		// Somebody put another there; ours must be the newer.
		s.state.Sequence = there.Sequence
	}
	s.save()
}

// save writes the state down. What cannot be written now, guard tries again.
func (s *shim) save() {
	if s.lost != nil {
		return // it could be somebody else's by now
	}
	err := s.state.save(s.dir)
	if err != nil && !s.unsaid {
		s.out.say("cannot write the state: %v", err)
	}
	s.unsaid = err != nil
}
