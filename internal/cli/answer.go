package cli

import (
	"errors"
	"io"
	"io/fs"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// An answer is standard output, and remembers the first thing that could not be
// written: whoever prints need not look, and no program says that all is well of an
// answer that nobody got.
type answer struct {
	w    io.Writer
	lost error
}

func (a *answer) Write(b []byte) (int, error) {
	n, err := a.w.Write(b)
	if err != nil && a.lost == nil {
		a.lost = err
	}
	return n, err
}

// fault is how a program ends that ends with err. What went wrong besides the writing
// is more to know than that.
func (a *answer) fault(err error) error {
	switch kind := fault.KindOf(err); {
	case a.lost == nil:
		return err
	case kind != 0 && kind != fault.Todo && !errors.Is(err, a.lost):
		return err
	}
	why := a.lost
	var path *fs.PathError
	if errors.As(why, &path) {
		why = path.Err
	}
	return fault.Failedf("cannot write the answer: %w", why)
}
