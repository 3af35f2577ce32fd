package child

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tidy is how often a memory is looked at whether it has grown too large.
const tidy = 20 * time.Millisecond

// A memory is a file in memory that a program writes to, and of which no more
// than the end is kept. It needs no reader: nobody who writes is ever blocked,
// or killed when this program dies.
type memory struct {
	file *os.File
	max  int64
	stop chan struct{}
	done chan struct{}
}

func newMemory(max int) (*memory, error) {
	fd, err := unix.MemfdCreate("output", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot keep output in memory: %w", err)
	}
	m := &memory{file: os.NewFile(uintptr(fd), "output"), max: int64(max), stop: make(chan struct{}), done: make(chan struct{})}
	go m.keepSmall()
	return m, nil
}

// keepSmall gives back what is before the end, as a hole (fallocate(2)): the file has
// the size of all that was written, and nothing that is being written is lost.
func (m *memory) keepSmall() {
	defer close(m.done)
	t := time.NewTicker(tidy)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if fi, err := m.file.Stat(); err == nil && fi.Size() > m.max {
				_ = unix.Fallocate(int(m.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, fi.Size()-m.max)
			}
		case <-m.stop:
			return
		}
	}
}

// end returns what was kept, and whether there was more.
func (m *memory) end() (tail []byte, cut bool) {
	close(m.stop)
	<-m.done
	defer m.file.Close()
	fi, err := m.file.Stat()
	if err != nil {
		return nil, false
	}
	from := max(0, fi.Size()-m.max)
	tail = make([]byte, fi.Size()-from)
	n, _ := m.file.ReadAt(tail, from)
	return tail[:n], from > 0
}
