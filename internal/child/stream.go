package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// Stream runs c and hands what it prints to out as it comes, however much and for
// however long: neither Timeout nor MaxOutput bounds it, and Outlives has no
// meaning. It ends when the program does, when ctx does, which is no error, or when
// out takes no more, whose error it then returns.
func Stream(ctx context.Context, c Command, out io.Writer) error {
	if !filepath.IsAbs(c.Path) {
		return fmt.Errorf("internal error: program %q is not absolute", c.Path)
	}
	running, kill := context.WithCancel(ctx)
	defer kill()
	cmd := c.prepared(running)
	to := &taker{out: out, full: kill}
	said := &bounded{max: 64 << 10}
	cmd.Stdout, cmd.Stderr = to, said
	err := cmd.Run()
	switch {
	case to.err != nil:
		return to.err
	case err == nil || ctx.Err() != nil:
		return nil
	}
	return c.failed(err.Error(), Result{Stderr: said.buf})
}

// A taker remembers why out takes no more, and says so at once: a program that is
// silent from then on would never notice.
type taker struct {
	out  io.Writer
	full func()
	err  error
}

func (t *taker) Write(p []byte) (int, error) {
	n, err := t.out.Write(p)
	if err == nil && n < len(p) {
		err = errors.New("short write")
	}
	if err != nil {
		t.err = err
		t.full()
	}
	return n, err
}
