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
	wanted  bool // and runs what is wanted
	state   supervise.State
	silent  error              // why state is not what that shim says of its process
	alone   bool               // no shim lives, and the process does
	known   supervise.Rollback // what its shim knows of its executables
	stays   bool               // and what was put back is there still
}

// look reads the folder of a process. It changes nothing. What lives and what
// it runs is known of the shim itself; the files only say how it does, and
// their absence or damage is no reason to touch it.
func (k *Kind) look(name string, def definition) (view, error) {
	v, dir := view{def: def}, k.dir(name)
	_, err := os.Lstat(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v, err
	}
	if v.exists = err == nil; v.exists {
		if v.written, err = written(filepath.Join(dir, supervise.DefinitionFile), def.bytes); err != nil {
			return v, err
		}
		v.state, v.silent = supervise.ReadState(dir)
		if def.Rollback {
			if v.known, err = k.rollback(name); err != nil {
				return v, err
			}
			v.stays = v.known.There(k.layout.Path(def.Command[0]))
		}
	}
	if v.completed() {
		return v, nil
	}
	shim, err := supervise.Shim(dir)
	if shim == nil || err != nil {
		if err == nil && v.silent == nil && v.state.Child != nil {
			if child, _ := supervise.Find(*v.state.Child); child != nil {
				child.Close()
				v.alone = true
			}
		}
		return v, err
	}
	defer shim.Close()
	v.shim, v.wanted = true, shim.Runs(def.digest)
	if v.exists && v.silent == nil && !shim.Wrote(v.state) {
		v.silent = errors.New("it has written nothing yet")
	}
	return v, nil
}

// completed: it runs once, and that has been done.
func (v view) completed() bool {
	return v.def.Once && v.silent == nil && v.state.Completed == v.def.digest
}

// spoken: state is what the living shim says.
func (v view) spoken() bool { return v.shim && v.silent == nil }

// runs: the shim runs what is wanted, and is not on its way out.
func (v view) runs() bool {
	if !v.shim || !v.wanted {
		return false
	}
	switch v.state.Phase {
	case supervise.Stopping, supervise.Killing, supervise.Stopped:
		return !v.spoken()
	}
	return true
}

// settled: there is something to say about how the process does.
func (v view) settled() bool {
	if v.completed() {
		return true
	}
	if !v.runs() || !v.spoken() {
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
	case v.alone:
		d = append(d, "runs, and its shim, which looks after it, does not")
	case !v.shim:
		d = append(d, "not running")
	case !v.wanted:
		d = append(d, "runs by an older definition")
	case !v.runs():
		d = append(d, "being stopped")
	case v.def.Once && !v.spoken():
		d = append(d, fmt.Sprintf("not known to be completed: its state cannot be read: %v", v.silent))
	case v.def.Once && !v.settled():
		d = append(d, fmt.Sprintf("not completed: %s since %s", v.state.Phase, v.state.Since.Format("15:04:05")))
	}
	return d
}

// failing is what is wrong with a process that is as wanted, or "".
func (v view) failing() string {
	s := v.state
	if v.completed() || !v.spoken() {
		return ""
	}
	switch s.Phase {
	case supervise.Halted:
		if s.Failures == 0 {
			return s.LastExit
		}
		why := v.notRolledBack()
		if why != "" {
			why += "; "
		}
		return fmt.Sprintf("%s, halted after %s; %smesh-host reconcile starts it again", s.LastExit, inARow(s.Failures), why)
	case supervise.Exited:
		if s.Failures > 0 {
			return s.LastExit + ", not started again"
		}
	case supervise.Backoff:
		if s.Failures > 0 {
			return fmt.Sprintf("%s, %s, backing off", s.LastExit, inARow(s.Failures))
		}
		if s.Short > 0 {
			return fmt.Sprintf("does not stay up: %s, %s, backing off", s.LastExit, ended(s.Short))
		}
	case supervise.Starting, supervise.Clearing:
		if s.Failures > 0 {
			return fmt.Sprintf("%s, %s, starting again", s.LastExit, inARow(s.Failures))
		}
		if s.Short > 0 {
			return fmt.Sprintf("does not stay up: %s, %s, starting again", s.LastExit, ended(s.Short))
		}
	}
	return ""
}

// note is what is worth knowing about a process that does well.
func (v view) note() string {
	how, which := v.how(), v.rolledBack()
	if how == "" || which == "" {
		return how + which
	}
	return which + "; " + how
}

// how is what is worth knowing about how it came to do well.
func (v view) how() string {
	s := v.state
	switch {
	case v.completed():
		return ""
	case !v.spoken():
		return fmt.Sprintf("its shim lives, but how it does cannot be read: %v", v.silent)
	case s.Phase == supervise.Running && s.Failures > 0:
		return fmt.Sprintf("up since %s after %s; the last: %s", s.Since.Format("15:04:05"), inARow(s.Failures), s.LastExit)
	case s.Phase == supervise.Running && s.Short > 0:
		return fmt.Sprintf("up since %s after it %s; the last: %s", s.Since.Format("15:04:05"), ended(s.Short), s.LastExit)
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

// ended is inARow for ends that are no failures, which say by their number alone
// that it does not do its work.
func ended(n int) string {
	if n == 1 {
		return "ended early once"
	}
	return fmt.Sprintf("ended early %d times in a row", n)
}

// readFull reads until b is full or the end, which is no error.
func readFull(r io.Reader, b []byte) (int, error) {
	n, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}
