package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// Who asks is answered though something hangs that is looked at: a file on a
// server that is gone, say, whose calls come back when it does.
const (
	// patience is how long one resource is looked at for an answer.
	patience = 5 * time.Second
	// hurry is how long each of the rest is, when one took longer: what hangs is
	// seldom alone.
	hurry = 250 * time.Millisecond
)

// A finding is what a look at a resource says.
type finding struct {
	there string
	how   []string
}

// looks are those that were left because they took too long, by the key of the
// resource. Nobody waits for one, and none is begun again until it is over.
type looks struct {
	mu   sync.Mutex
	left map[string]bool
}

// at looks at what key names, and waits for it so long. late: it was left.
func (l *looks) at(ctx context.Context, key string, wait time.Duration, look func(context.Context) finding) (f finding, late bool) {
	l.mu.Lock()
	left := l.left[key]
	l.mu.Unlock()
	if left {
		return finding{unknown, []string{"an earlier look at it is not over yet"}}, false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan finding, 1)
	go func() {
		f := look(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		found <- f
		delete(l.left, key)
	}()
	over := time.NewTimer(wait)
	defer over.Stop()
	select {
	case f := <-found:
		return f, false
	case <-over.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case f := <-found:
		return f, false
	default:
	}
	if l.left == nil {
		l.left = map[string]bool{}
	}
	l.left[key] = true
	return finding{unknown, []string{fmt.Sprintf("looking at it takes more than %s", wait)}}, true
}

// looked looks at each of the records, and gives tell what it found.
func (s *Service) looked(ctx context.Context, records []resource.Record, tell func(resource.Record, finding)) {
	kinds, wait := s.engine.Surveyed(), patience
	for _, r := range records {
		f, late := s.looks.at(ctx, r.Key, wait, func(ctx context.Context) (f finding) {
			f.there, f.how = look(ctx, kinds, r)
			return f
		})
		if late {
			wait = hurry
		}
		tell(r, f)
	}
}
