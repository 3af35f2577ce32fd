package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
)

// A view is what can be seen of one process at a moment.
type view struct {
	def     definition
	exists  bool // it has a folder
	written bool // its definition is on disk, as wanted
	shim    bool // a shim lives
	state   supervise.State
	spoken  bool // and state is what that shim says
}

// look reads the folder of a process. It changes nothing.
func (k *Kind) look(name string, def definition) (view, error) {
	v, dir := view{def: def}, k.dir(name)
	if _, err := os.Lstat(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return v, nil
		}
		return v, err
	}
	v.exists = true
	var err error
	if v.written, err = written(filepath.Join(dir, supervise.DefinitionFile), def.bytes); err != nil {
		return v, err
	}
	shim, err := supervise.Shim(dir)
	if err != nil {
		return v, err
	}
	if shim != nil {
		defer shim.Close()
		v.shim = true
	}
	// A state that cannot be read says nothing; the shim writes a new one.
	v.state, err = supervise.ReadState(dir)
	v.spoken = err == nil && v.shim && v.state.Shim.PID == shim.PID
	if err != nil {
		v.state = supervise.State{}
	}
	return v, nil
}

// completed: it runs once, and that has been done.
func (v view) completed() bool { return v.def.Once && v.state.Completed == v.def.digest }

// runs: the shim runs what is wanted, and is not on its way out.
func (v view) runs() bool {
	if !v.spoken || v.state.Definition != v.def.digest {
		return false
	}
	switch v.state.Phase {
	case supervise.Stopping, supervise.Killing, supervise.Stopped:
		return false
	}
	return true
}

// settled: there is something to say about how the process does.
func (v view) settled() bool {
	if v.completed() {
		return true
	}
	if !v.runs() {
		return false
	}
	switch v.state.Phase {
	case supervise.Backoff, supervise.Exited, supervise.Halted:
		return true
	case supervise.Running:
		return !v.def.Once
	}
	return false
}

func (v view) differences() []string {
	var d []string
	switch {
	case !v.exists:
		return []string{"missing"}
	case !v.written:
		d = append(d, "definition")
	}
	switch {
	case v.completed():
	case !v.shim:
		d = append(d, "not running")
	case !v.spoken:
		d = append(d, "its shim has not said anything yet")
	case v.state.Definition != v.def.digest:
		d = append(d, "runs by an older definition")
	case !v.runs():
		d = append(d, "being stopped")
	case v.def.Once && !v.settled():
		d = append(d, fmt.Sprintf("not completed: %s since %s", v.state.Phase, v.state.Since.Format("15:04:05")))
	}
	return d
}

// failing is what is wrong with a process that is as wanted, or "".
func (v view) failing() string {
	s := v.state
	if v.completed() {
		return ""
	}
	switch s.Phase {
	case supervise.Halted:
		if s.Failures == 0 {
			return s.LastExit
		}
		return fmt.Sprintf("%s, halted after %s", s.LastExit, inARow(s.Failures))
	case supervise.Exited:
		if s.Failures > 0 {
			return s.LastExit + ", not started again"
		}
	case supervise.Backoff:
		if s.Failures > 0 {
			return fmt.Sprintf("%s, %s, backing off", s.LastExit, inARow(s.Failures))
		}
	case supervise.Starting, supervise.Clearing:
		if s.Failures > 0 {
			return fmt.Sprintf("%s, %s, starting again", s.LastExit, inARow(s.Failures))
		}
	}
	return ""
}

// note is what is worth knowing about a process that does well.
func (v view) note() string {
	s := v.state
	switch {
	case v.completed():
		return ""
	case s.Phase == supervise.Running && s.Failures > 0:
		return fmt.Sprintf("up since %s after %s; the last: %s", s.Since.Format("15:04:05"), inARow(s.Failures), s.LastExit)
	case s.Phase == supervise.Exited, s.Phase == supervise.Backoff:
		return s.LastExit
	}
	return ""
}

func inARow(n int) string {
	if n == 1 {
		return "1 failure"
	}
	return fmt.Sprintf("%d failures in a row", n)
}

// readFull reads until b is full or the end, which is no error.
func readFull(r io.Reader, b []byte) (int, error) {
	n, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}
