package profile

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/nox-mesh/nox-mesh/internal/singleflight"
)

// looks are those that go on, at most one for each fact of each root.
type looks = singleflight.Group[finding]

// ask looks for f, or waits for the look that goes on already, until that has
// taken f's limit or ctx ends.
func (s source) ask(ctx context.Context, f fact) (finding, error) {
	key := f.name + "\x00" + s.files.Root + "\x00" + s.kernel.Root
	found, _, err := s.looks.Do(ctx, key, f.limit, f.limit, func(ctx context.Context) (finding, error) { return f.look(ctx, s) })
	switch {
	case ctx.Err() != nil && err == ctx.Err():
		return nil, errStopped
	case late(err):
		err = fmt.Errorf("it did not answer within %d s", int(f.limit.Seconds()))
	}
	return found, err
}

var errStopped = errors.New("the look was ended before it answered")

func late(err error) bool {
	return err == singleflight.ErrLate || err == singleflight.ErrHangs ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}
