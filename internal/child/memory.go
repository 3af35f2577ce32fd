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
	max  int
	tail []byte
	cut  bool
	stop chan struct{}
	done chan struct{}
}

func newMemory(max int) (*memory, error) {
	fd, err := unix.MemfdCreate("output", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot keep output in memory: %w", err)
	}
	// What is written after the file was emptied goes to its new end.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_APPEND); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot keep output in memory: %w", err)
	}
	m := &memory{file: os.NewFile(uintptr(fd), "output"), max: max, stop: make(chan struct{}), done: make(chan struct{})}
	go m.keepSmall()
	return m, nil
}

// keepSmall empties the file whenever more is in it than is kept, and keeps the
// end. What is written in that moment may be lost.
func (m *memory) keepSmall() {
	defer close(m.done)
	t := time.NewTicker(tidy)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if fi, err := m.file.Stat(); err == nil && fi.Size() > int64(m.max) {
				m.take(fi.Size())
				_ = m.file.Truncate(0)
			}
		case <-m.stop:
			return
		}
	}
}

// take adds the end of the file to the tail.
func (m *memory) take(size int64) {
	from := max(0, size-int64(m.max))
	b := make([]byte, size-from)
	n, _ := m.file.ReadAt(b, from)
	m.tail = append(m.tail, b[:n]...)
	if over := len(m.tail) - m.max; over > 0 {
		m.tail = append([]byte(nil), m.tail[over:]...)
	}
	m.cut = m.cut || from > 0 || len(m.tail) == m.max
}

// end returns what was kept, and whether there was more.
func (m *memory) end() ([]byte, bool) {
	close(m.stop)
	<-m.done
	if fi, err := m.file.Stat(); err == nil {
		m.take(fi.Size())
	}
	m.file.Close()
	return m.tail, m.cut
}
