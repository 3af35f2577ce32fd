package durable

import (
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Barrier lets files that are made at the same time share what makes them
// durable: when each of its members waits for its file to be on the disk, one
// syncfs(2) writes them all; when each waits for its directory, every directory
// is fsynced once. Each member keeps the order of this package (content, fsync,
// rename, fsync of the directory), so a kill leaves what it leaves without one.
//
// Where one call is not known to be as good as many (few files, another file
// system, an old kernel), or when it fails, every file is fsynced alone: an
// error is told to the one whose file it is.
type Barrier struct {
	mu sync.Mutex
	// members are those that have not left, waiting those that stand at it.
	members int
	waiting []*waiter
	hurry   *time.Timer
}

type waiter struct {
	fd   int
	name string
	dir  bool
	done chan error
}

// fewFiles is what is quicker alone: syncfs waits for everybody's data.
const fewFiles = 32

// patience is how long members wait at the barrier for one that does not come.
const patience = time.Second

// NewBarrier returns a barrier for so many members; each must Leave.
func NewBarrier(members int) *Barrier { return &Barrier{members: members} }

// Leave says that one member will not come any more.
func (b *Barrier) Leave() {
	b.mu.Lock()
	b.members--
	all := b.taken(false)
	b.mu.Unlock()
	flush(all)
}

// wait returns when the open file or directory fd is on the disk.
func (b *Barrier) wait(fd int, name string, dir bool) error {
	w := &waiter{fd, name, dir, make(chan error, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	all := b.taken(false)
	if all == nil && b.hurry == nil {
		b.hurry = time.AfterFunc(patience, func() {
			b.mu.Lock()
			all := b.taken(true)
			b.mu.Unlock()
			flush(all)
		})
	}
	b.mu.Unlock()
	flush(all)
	return <-w.done
}

// taken takes those that wait, when all are there or nobody is waited for.
func (b *Barrier) taken(now bool) []*waiter {
	if len(b.waiting) == 0 || !now && len(b.waiting) < b.members {
		return nil
	}
	if b.hurry != nil {
		b.hurry.Stop()
		b.hurry = nil
	}
	all := b.waiting
	b.waiting = nil
	return all
}

// flush brings everything to the disk, files before directories: what is told
// of a directory must not be there before what is in it.
func flush(all []*waiter) {
	files := map[uint64][]*waiter{}
	dirs := map[[2]uint64][]*waiter{}
	for _, w := range all {
		var st unix.Stat_t
		err := unix.Fstat(w.fd, &st)
		switch {
		case err != nil:
			w.done <- &fs.PathError{Op: "fsync", Path: w.name, Err: err}
		case w.dir:
			at := [2]uint64{st.Dev, st.Ino}
			dirs[at] = append(dirs[at], w)
		default:
			files[st.Dev] = append(files[st.Dev], w)
		}
	}
	for _, ws := range files {
		if len(ws) >= fewFiles && atOnce(ws[0].fd) && syncfs(ws[0].fd) == nil {
			tell(ws, nil)
			continue
		}
		for _, w := range ws {
			tell([]*waiter{w}, unix.Fsync(w.fd))
		}
	}
	for _, ws := range dirs {
		tell(ws, unix.Fsync(ws[0].fd))
	}
}

func tell(ws []*waiter, err error) {
	for _, w := range ws {
		if err == nil {
			w.done <- nil
			continue
		}
		w.done <- &fs.PathError{Op: "fsync", Path: w.name, Err: err}
	}
}

// syncfs is where a test stands in for a disk that fails.
var syncfs = unix.Syncfs

// atOnce reports whether syncfs(2) makes the data of the file system that fd is
// in durable, and tells when it did not. Linux tells since 5.8; some file
// systems (FUSE) return before their disk has it.
func atOnce(fd int) bool {
	var st unix.Statfs_t
	if !tells() || unix.Fstatfs(fd, &st) != nil {
		return false
	}
	return slices.Contains([]int64{
		unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC,
	}, int64(st.Type)) // its width is the architecture's
}

var tells = sync.OnceValue(func() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	return since58(unix.ByteSliceToString(u.Release[:]))
})

func since58(release string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n != 2 {
		return false
	}
	return major > 5 || major == 5 && minor >= 8
}
