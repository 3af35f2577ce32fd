package repository

import (
	"bytes"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/seed"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// How often who asks makes the seed be looked at, and what is of no use be looked at
// again: it may be the trust that was put right.
const (
	lookInterval  = time.Second
	retryInterval = 10 * time.Second
)

// A Server serves what there is.
type Server struct {
	store   *state.Store
	blobs   *content.Store
	seed    string
	trusted func() (*trust.Policy, error)
	log     *slog.Logger
	limits  limits

	mu      sync.Mutex
	shelves map[string]*shelf // by architecture
	faults  []error
	stamp   string // of the seed, when it was taken in
	looked  time.Time
	taken   time.Time
}

// New returns a server of what the state names and of the seed in the directory
// dir. trusted says whose lists count.
func New(store *state.Store, blobs *content.Store, dir string, trusted func() (*trust.Policy, error), log *slog.Logger) *Server {
	return &Server{store: store, blobs: blobs, seed: dir, trusted: trusted, log: log, limits: usual, shelves: map[string]*shelf{}, stamp: "never looked at"}
}

// A Release is what is served for one architecture.
type Release struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	Counter      uint64 `json:"counter"`
	From         From   `json:"from"`
}

// Serves says what is served, by architecture, and what is not and why.
func (s *Server) Serves() (out []Release, faults []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look(true)
	for _, arch := range slices.Sorted(maps.Keys(s.shelves)) {
		out = append(out, s.shelves[arch].release())
	}
	return out, slices.Clone(s.faults)
}

func (s *shelf) release() Release {
	return Release{Name: s.Name, Version: s.Version, Architecture: s.Architecture, Counter: s.Counter, From: s.from}
}

// List returns the signed list of what is served for an architecture, and its
// signature; nil when nothing is.
func (s *Server) List(architecture string) (list, signature []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look(true)
	if shelf, ok := s.shelves[architecture]; ok {
		return slices.Clone(shelf.list), slices.Clone(shelf.signature)
	}
	return nil, nil
}

// Changed says that the state names something else.
func (s *Server) Changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take()
}

// look takes in a seed that was changed: the host lays it down, and tells nobody.
// s.mu is held.
func (s *Server) look(now bool) {
	at := clock.System.Now() // of the machine, and only to ask less often
	if since := at.Sub(s.looked); !now && since >= 0 && since < lookInterval {
		return
	}
	s.looked = at
	since := at.Sub(s.taken)
	again := len(s.faults) > 0 && (now || since < 0 || since > retryInterval)
	if again || stamp(s.seed) != s.stamp {
		s.take()
	}
}

// take makes shelves of what there is; s.mu is held. When one cannot be made, the
// one before it stays: it may be a seed that the host is in the middle of.
func (s *Server) take() {
	// Before it is read: what changes meanwhile is looked at again.
	s.stamp, s.taken = stamp(s.seed), clock.System.Now()
	before := s.faults
	s.faults = nil
	defer func() { s.tell(before) }()
	c := s.candidates()
	defer c.close()
	best := map[string]*shelf{}
	for _, next := range c.shelves { // the newest first
		arch := next.Architecture
		if best[arch] != nil {
			continue
		}
		if now := s.shelves[arch]; now != nil && now.from == next.from && bytes.Equal(now.list, next.list) {
			best[arch] = now
			continue
		}
		if err := next.fill(c.open(next.from)); err != nil {
			s.fault(err)
			c.halves = append(c.halves, arch)
			continue
		}
		best[arch] = next
		s.log.Info("a release is served to new machines", "version", next.Version, "architecture", arch, "counter", next.Counter, "from", next.from)
	}
	for arch, old := range s.shelves {
		half := slices.Contains(c.halves, arch) || slices.Contains(c.unread, old.from)
		next := best[arch]
		switch {
		case next == old:
		case half && (next == nil || next.Counter < old.Counter):
			best[arch] = old
			if next != nil {
				s.leave(next)
			}
		default:
			s.leave(old)
		}
	}
	s.shelves = best
}

func (s *Server) fault(err error) { s.faults = append(s.faults, err) }

// tell logs the faults that are not the ones before.
func (s *Server) tell(before []error) {
	for _, err := range s.faults {
		if !slices.ContainsFunc(before, func(b error) bool { return b.Error() == err.Error() }) {
			s.log.Warn("something is not served to new machines", "cause", err)
		}
	}
}

// find returns an open file that has that path, the shelf it is on, and what the
// list says of it. The caller leaves the shelf.
func (s *Server) find(path string) (*shelf, *os.File, seed.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look(false)
	for _, shelf := range s.shelves {
		for _, f := range shelf.Files {
			if "/"+f.Name == path {
				shelf.users++
				return shelf, shelf.files[f.Name], f
			}
		}
	}
	return nil, nil, seed.File{}
}

// leave is called by who does not need the shelf any more; s.mu is held.
func (s *Server) leave(shelf *shelf) {
	if shelf.users--; shelf.users == 0 {
		_ = shelf.close() // they were only read
	}
}

// close ends all that is served.
func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, shelf := range s.shelves {
		s.leave(shelf)
	}
	s.shelves = map[string]*shelf{}
}
