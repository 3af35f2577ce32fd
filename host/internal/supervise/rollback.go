package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// between is called between the steps of putting back, for a test to end the shim
// there.
var between = func(string) {}

// rollBack is the event that the limit of failures is reached. It reports whether
// the process is to be started again, with failures counted anew; if it is not, why
// says what there is to say of it.
//
// What failed is written down before anything is touched, and that Good takes its
// place: whoever is killed in between finds it (finish).
func (s *shim) rollBack() (again bool, why string) {
	if s.known.Unable != "" {
		_ = s.learn(func(r *Rollback) { r.Unable = "" }) // of another time
	}
	good := s.known.Good
	switch {
	case s.blameless:
		return false, ""
	case good == nil:
		return false, s.unable(fmt.Errorf("none has lived for %s yet", s.def.Healthy))
	}
	failed, err := s.culprit()
	switch {
	case err != nil:
		return false, s.unable(err)
	case failed == "":
		s.out.say("%s; its executable was replaced meanwhile: failures are counted anew", s.state.LastExit)
		return true, ""
	case failed == good.Digest && s.known.Back():
		return false, "the executable before it, put back, failed as well"
	case failed == good.Digest:
		return false, ""
	}
	if err := whole(s.dir, good.Digest); err != nil {
		return false, s.unable(err)
	}
	err = s.learn(func(r *Rollback) {
		if failed != absent {
			r.add(Failure{failed, s.state.Failures, s.state.LastExit, time.Now().UTC()})
		}
		r.Returning, r.Put, r.Unable = failed, nil, ""
	})
	between("known")
	if err == nil {
		err = s.putBack(failed)
	}
	if err != nil {
		return false, s.unable(s.giveUp(failed, err))
	}
	s.out.say("%s; after %d failures in a row the executable %s is replaced by the one before it, %s", s.state.LastExit, s.state.Failures, failed, good.Digest)
	return true, ""
}

// culprit is the digest of what failed and is at the path, or absent; "" when
// something else is there by now.
func (s *shim) culprit() (string, error) {
	path := s.under(s.def.Command[0])
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent, nil
	case err != nil:
		return "", err
	case !fi.Mode().IsRegular():
		return "", errors.New("what is in its place is no regular file")
	case s.run == nil: // it came since, or we may not read it
		e, err := openExecutable(path)
		e.close()
		return "", err
	case !s.run.is(path):
		return "", nil
	}
	return s.run.digest()
}

// unable says why Good is not put back, here and to the host.
func (s *shim) unable(err error) (why string) {
	_ = s.learn(func(r *Rollback) { r.Unable = err.Error() }) // it is said in the log, too
	return fmt.Sprintf("the executable before it cannot be put back: %v", err)
}

// giveUp is for what failed and is still in its place.
func (s *shim) giveUp(failed string, err error) error {
	_ = s.learn(func(r *Rollback) { // or it is as finish finds it
		r.Returning = ""
		r.drop(failed)
	})
	return err
}

// finish ends what a shim that was killed began: Good takes the place of what
// failed, unless somebody put something else there.
func (s *shim) finish() {
	failed := s.known.Returning
	if !s.def.Rollback || failed == "" {
		return
	}
	now, at := absent, identity{}
	e, err := openExecutable(s.under(s.def.Command[0]))
	switch {
	case err == nil:
		at = e.id
		now, err = e.digest()
		e.close()
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	switch {
	case err != nil:
	case s.known.Good != nil && now == s.known.Good.Digest:
		err = s.learn(func(r *Rollback) { r.Returning, r.Put = "", &at })
	case s.known.Good != nil && now == failed:
		err = s.putBack(failed)
	default:
		s.clean()
		err = s.learn(func(r *Rollback) { r.Returning = "" })
	}
	if err != nil {
		s.out.say("%s", s.unable(s.giveUp(failed, err)))
	}
	s.state.Failures, s.state.Short = 0, 0
}

// clean takes away what is half done beside the path.
func (s *shim) clean() {
	dir, name := filepath.Split(s.def.Command[0])
	if d, err := openWay(s.root, dir); err == nil {
		_ = d.Remove(backName(name))
		d.Close()
	}
}
