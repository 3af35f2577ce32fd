package door

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// How says in which way a question was not answered.
type How int

const (
	// Absent: nobody took the question. There is no socket, none who listens at
	// it, or more wait there already than can be heard.
	Absent How = iota + 1
	// NotAllowed: the asker is not let in.
	NotAllowed
	// Cut: who was asked ended, or hung up, before the answer was all there.
	Cut
	// Strange: what came is no answer.
	Strange
	// Other is what Err says: the asker's context ended, or the system failed.
	Other
)

// Unanswered is in the chain of each error that is not the answer.
type Unanswered struct {
	How How
	Err error
}

func (u *Unanswered) Error() string { return u.Err.Error() }
func (u *Unanswered) Unwrap() error { return u.Err }

// HowOf returns how the question was not answered, or 0 when err is the answer.
func HowOf(err error) How {
	if u := new(Unanswered); errors.As(err, &u) {
		return u.How
	}
	return 0
}

// unanswered finds out what it means that a request to the socket at path ended
// with err.
func unanswered(ctx context.Context, path string, err error) *Unanswered {
	how := Cut
	var op *net.OpError
	switch dialled := !errors.As(err, &op) || op.Op != "dial"; {
	case ctx.Err() != nil:
		how = Other
	case errors.Is(err, fs.ErrPermission):
		how = NotAllowed
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), !dialled && errors.Is(err, syscall.EAGAIN):
		how = Absent // EAGAIN: the queue is full (connect(2))
	case !dialled:
		how = Other
	case stranger(path):
		how = NotAllowed // hung up on, since the file mode let the asker through
	}
	return &Unanswered{how, err}
}

// stranger says that the asker is one whom OwnerOnly does not admit.
func stranger(path string) bool {
	fi, err := os.Stat(path)
	if err != nil {
		return false
	}
	uid := os.Geteuid()
	return uid != 0 && fi.Sys().(*syscall.Stat_t).Uid != uint32(uid)
}
