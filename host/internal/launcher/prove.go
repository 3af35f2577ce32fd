package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/slots"
)

// Probation is how long a version must have been up, at least, before it proves
// itself.
const Probation = time.Minute

// self opens the image that runs, whatever became of the path it came from.
const self = "/proc/self/exe"

// Given returns what the launcher was given up for in favour of the program that
// runs, whose copy at the path launcher runs where it lies: binary is what is
// installed. It is "" for a host that was not started so.
func Given(launcher string) (binary string) {
	here, err := os.Stat(self)
	if err != nil {
		return ""
	}
	// By the file, and not by its path: the state may lie behind a symlink.
	there, err := os.Stat(launcher)
	if err != nil || !os.SameFile(here, there) || len(os.Args) < 2 || os.Args[1] != "run" || !filepath.IsAbs(os.Args[0]) || os.Args[0] == launcher {
		return ""
	}
	return os.Args[0]
}

// Introduce writes down the version of a host on trial, for the case that it
// fails. dir is the launcher's folder.
func Introduce(dir, version string) error {
	return change(dir, func(s *State) bool {
		if s.Trial == nil || s.Trial.Again || s.Trial.Version == version {
			return false
		}
		s.Trial.Version = bounded(version)
		return true
	})
}

// StoppedByRequest takes back the count of this start: the host ends because it was asked
// to.
func StoppedByRequest(dir string) error {
	return change(dir, func(s *State) bool {
		if s.Trial == nil || s.Trial.Starts == 0 {
			return false
		}
		s.Trial.uncount()
		return true
	})
}

// Prove is what the host calls once the version that runs has shown that it
// lives: the copy is made what runs, and nothing is counted any more. It reports
// whether there was anything to prove. One that runs for want of
// what is installed (Given) proves the copy itself.
func Prove(launcher string) (proved bool, err error) {
	dir := filepath.Dir(launcher)
	state, err := known(dir)
	if err != nil {
		return false, err
	}
	same, _, err := compare(self, launcher)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // nobody is started by a launcher here
	}
	if err != nil {
		return false, fmt.Errorf("cannot compare with the launcher's copy: %w", err)
	}
	if same && state.Trial == nil {
		return false, nil
	}
	// First the count, which needs no room.
	if err := change(dir, func(s *State) bool {
		if s.Trial != nil {
			s.Trial.Starts, s.Trial.Total = 0, 0
		}
		return s.Trial != nil
	}); err != nil {
		return false, err
	}
	if !same {
		if err := replace(self, launcher); err != nil {
			return false, fmt.Errorf("cannot renew the launcher's copy: %w", err)
		}
	}
	return true, change(dir, func(s *State) bool {
		s.Trial = nil
		if !same {
			s.Failed = nil
		}
		return true
	})
}

// change writes the state as f makes it, if f says that it did anything.
func change(dir string, f func(*State) bool) error {
	s, err := known(dir)
	if err != nil || !f(&s) {
		return err
	}
	return s.write(dir)
}

// known is Read for whoever writes: a damaged state is begun anew.
func known(dir string) (State, error) {
	s, err := Read(dir)
	if errors.Is(err, slots.ErrDamaged) {
		return State{}, nil
	}
	return s, err
}
