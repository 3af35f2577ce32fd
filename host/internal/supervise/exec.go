package supervise

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// exec starts the child, and returns its PID.
func (s *shim) exec() (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	dir := s.under(s.def.Directory)
	env := s.def.Env
	if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "PATH=") }) {
		env = append([]string{path}, env...)
	}
	env = append(slices.Clip(env), s.state.Shim.mark())
	if s.root != "" {
		env = append(env, "NOX_ROOT="+s.root)
	}
	sys := &syscall.SysProcAttr{Setsid: true}
	if int(s.def.UID) != os.Geteuid() || int(s.def.GID) != os.Getegid() || len(s.def.Groups) > 0 {
		sys.Credential = &syscall.Credential{Uid: s.def.UID, Gid: s.def.GID, Groups: s.def.Groups}
	}
	pid, err := syscall.ForkExec(s.under(s.def.Command[0]), s.def.Command, &syscall.ProcAttr{
		Dir:   dir,
		Env:   env,
		Files: []uintptr{null.Fd(), s.out.stdout.Fd(), s.out.stderr.Fd()},
		Sys:   sys,
	})
	s.blameless = scarce(err)
	if err != nil {
		// The error does not say which of the two it is about.
		if fi, derr := os.Stat(dir); derr != nil || !fi.IsDir() {
			s.blameless = true
			return 0, fmt.Errorf("working directory %q: %w", s.def.Directory, err)
		}
		err = notExecutable(s.under(s.def.Command[0]), err)
	}
	return pid, err
}

// scarce: the machine has no room for a process now, whatever it would execute
// (fork(2), execve(2)).
func scarce(err error) bool {
	for _, e := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.ENFILE, syscall.EMFILE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// notExecutable says what execve(2) means by an error that reads as if it were about
// something else.
func notExecutable(program string, err error) error {
	fi, serr := os.Stat(program)
	switch {
	case serr != nil:
		return err
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("it is there, and the interpreter that it names is not: %w", err)
	case errors.Is(err, syscall.EACCES) && fi.Mode().IsRegular() && fi.Mode()&0o111 == 0:
		return fmt.Errorf("it is not executable (%04o): %w", fi.Mode().Perm(), err)
	}
	return err
}
