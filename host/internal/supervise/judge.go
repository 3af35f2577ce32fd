package supervise

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// recall takes what an earlier shim knew of the executables. What a process that is
// not to be rolled back has of it goes.
func (s *shim) recall() {
	switch {
	case s.broken != nil:
		return
	case !s.def.Rollback:
		if err := os.Remove(filepath.Join(s.dir, RollbackFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.out.say("cannot forget what is known of its executables: %v", err)
		}
		s.sweep()
		return
	}
	r, err := ReadRollback(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.out.say("what is known of its executables cannot be read and is begun anew: %v", err)
	}
	s.known = r
	if !r.Of(s.def.Command[0]) {
		s.known = Rollback{Sequence: r.Sequence, Program: Digest([]byte(s.def.Command[0]))}
		if err := s.learn(func(*Rollback) {}); err != nil {
			s.out.say("cannot write down what is known of its executables: %v", err)
		}
	}
	s.sweep()
}

// learn changes what is known, on the disk as well.
func (s *shim) learn(change func(*Rollback)) error {
	next := s.known
	change(&next)
	err := next.save(s.dir)
	s.known = next
	return err
}

// watchOver is the event that it is time to look after what is known: it is written
// again when somebody damaged it, and a copy that could not be made is tried again.
func (s *shim) watchOver() {
	if !s.def.Rollback || s.lost != nil {
		return
	}
	if _, err := ReadRollback(s.dir); err != nil {
		_ = s.learn(func(*Rollback) {}) // the next time, then
	}
	if s.lasted && s.unkept != "" && !time.Now().Before(s.again) {
		s.prove()
	}
}

// under is where a path of the definition is.
func (s *shim) under(path string) string { return filepath.Join("/", s.root, path) }

// take holds on to the executable that is started next. Failures are counted for
// each by itself: what failed before it was replaced says nothing of the new one.
func (s *shim) take() {
	if !s.def.Rollback {
		return
	}
	last := s.run
	s.run, _ = openExecutable(s.under(s.def.Command[0])) // exec says why not
	if last != nil && s.run != nil && last.id.content() != s.run.id.content() && s.state.Failures > 0 {
		s.out.say("its executable was replaced: failures are counted anew")
		s.state.Failures, s.state.Short = 0, 0
	}
	last.close()
	if s.known.Put == nil || s.run == nil || *s.known.Put == s.run.id {
		return
	}
	// Somebody touched it: is it still what was put back?
	digest, err := s.run.digest()
	if err != nil {
		return
	}
	put := &s.run.id
	if s.known.Good == nil || digest != s.known.Good.Digest {
		put = nil
	}
	if err := s.learn(func(r *Rollback) { r.Put = put }); err != nil {
		s.out.say("cannot write down what is known of its executables: %v", err)
	}
}

// release ends the hold on the executable: its file system may be unmounted.
func (s *shim) release() {
	s.run.close()
	s.run = nil
}
