// Package child runs other people's programs, the one door for it.
//
// No shell, an absolute program, an explicit environment with LC_ALL=C, no
// standard input, an own process group that dies whole, a deadline, bounded
// output, and one error that holds the command, its status and its last lines.
// An exit status is a hint: whoever calls looks at the machine afterwards.
package child

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Command is one run of a program.
type Command struct {
	// Path is the program, absolute.
	Path string
	Args []string
	// Env is added to LC_ALL=C and a plain PATH; nothing is inherited.
	Env []string
	Dir string
	// Timeout bounds the run; 0 is one minute.
	Timeout time.Duration
	// MaxOutput bounds what is kept of each stream; 0 is 1 MiB. What is over
	// it is read and thrown away, so the program is never blocked.
	MaxOutput int
	// Outlives says that the program is to go on should this one die. Its
	// output then goes to a file in memory that dies with the last who holds
	// it, because a pipe whose reader is gone kills who writes (pipe(7)). Both
	// streams are in Result.Stdout, and of what is over MaxOutput the end is
	// kept and not the beginning.
	Outlives bool
}

// A Result is what a run left.
type Result struct {
	Stdout, Stderr []byte
	// Truncated says that more was printed than was kept.
	Truncated bool
	// Exited says that the program ended by itself, with a status: not by a
	// signal or its deadline, and that it began at all.
	Exited bool
}

// Run runs c to its end. The error names the program, how it ended and the
// last lines it printed.
func Run(ctx context.Context, c Command) (Result, error) {
	if !filepath.IsAbs(c.Path) {
		return Result{}, fmt.Errorf("internal error: program %q is not absolute", c.Path)
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	if c.MaxOutput == 0 {
		c.MaxOutput = 1 << 20
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := c.prepared(ctx)
	out, errOut := &bounded{max: c.MaxOutput}, &bounded{max: c.MaxOutput}
	cmd.Stdout, cmd.Stderr = out, errOut
	var kept *memory
	if c.Outlives {
		var err error
		if kept, err = newMemory(c.MaxOutput); err != nil {
			return Result{}, err
		}
		cmd.Stdout, cmd.Stderr = kept.file, kept.file
	}
	err := cmd.Run()
	if kept != nil {
		out.buf, out.cut = kept.end()
	}
	res := Result{Stdout: out.buf, Stderr: errOut.buf, Truncated: out.cut || errOut.cut}
	res.Exited = cmd.ProcessState != nil && cmd.ProcessState.Exited()
	if err == nil {
		return res, nil
	}
	how := err.Error()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		how = fmt.Sprintf("no end after %s", c.Timeout)
	case ctx.Err() != nil && !res.Exited:
		how = ctx.Err().Error() // it was killed by us
	}
	return res, c.failed(how, res)
}

// prepared is the command as each is run; ctx kills it whole.
func (c Command) prepared(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Env = append([]string{"LC_ALL=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, c.Env...)
	cmd.Dir = c.Dir
	// A session of its own has no terminal to ask at (credentials(7)), and is a group
	// that can be killed whole.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// failed is the error of a run that ended so.
func (c Command) failed(how string, res Result) error {
	msg := fmt.Sprintf("%s: %s", strings.Join(append([]string{filepath.Base(c.Path)}, c.Args...), " "), how)
	if last := lastLines(res); last != "" {
		msg += ": " + last
	}
	return errors.New(msg)
}

func lastLines(r Result) string {
	text := strings.TrimSpace(string(r.Stderr))
	if text == "" {
		text = strings.TrimSpace(string(r.Stdout))
	}
	lines := strings.Split(text, "\n")
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	return strings.Join(lines, " | ")
}

type bounded struct {
	buf []byte
	max int
	cut bool
}

func (b *bounded) Write(p []byte) (int, error) {
	keep := min(len(p), b.max-len(b.buf))
	b.buf = append(b.buf, p[:keep]...)
	b.cut = b.cut || keep < len(p)
	return len(p), nil
}
