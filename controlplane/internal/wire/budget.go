package wire

import "sync"

// maxBodies is how many bytes of enrolments may be in memory at once. A body
// whose length is not known counts as the longest.
const maxBodies = 64 << 20

// A budget is a number of bytes to be given out.
type budget struct {
	mu   sync.Mutex
	left int64
}

func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}
