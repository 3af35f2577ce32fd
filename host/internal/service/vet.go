package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// vetTime is how long a new host may take to say its version.
const vetTime = 20 * time.Second

// vetName is what a new host is called while it is tried, beside the launcher's
// copy: programs run from there. A crash can leave it; the next trial replaces it.
const vetName = ".mesh-host.trial"

// refusals are the hosts that do not run here, by digest, and why: each is tried
// once.
type refusals struct {
	mu  sync.Mutex
	why map[digest.Digest]error
}

// vet tries the content that is about to become the host's own binary, and returns
// an error unless it runs here and says that it is a mesh-host. Everything else may
// be put in place as it is. (A package is the package manager's to put in place:
// there the launcher is what helps.)
func (s *Service) vet(ctx context.Context, path string, sum digest.Digest) error {
	if !slices.Contains(s.binaries(), s.Layout.Path(path)) {
		return nil
	}
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	if why, ok := s.refusals.why[sum]; ok {
		return why
	}
	why, lasts := s.try(ctx, sum)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if why != nil && lasts {
		if s.refusals.why == nil {
			s.refusals.why = map[digest.Digest]error{}
		}
		s.refusals.why[sum] = why
	}
	return why
}

// try runs it. What it says by itself lasts; that it could not be run may pass.
func (s *Service) try(ctx context.Context, sum digest.Digest) (why error, lasts bool) {
	d, err := durable.OpenDir(s.Layout.LauncherDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false // nothing is installed here that a launcher starts
	}
	if err != nil {
		return err, false
	}
	defer d.Close()
	whole, err := s.layTrial(d, sum)
	if err != nil {
		return fmt.Errorf("the new host cannot be tried: %w", err), false
	}
	defer func() { _ = d.Remove(vetName) }()
	if !whole {
		return nil, false // it is not put in place either, and fetched again
	}
	res, err := child.Run(ctx, child.Command{Path: s.Layout.LauncherDir() + "/" + vetName, Args: []string{"version"}, Timeout: vetTime})
	if err != nil {
		return fault.Failedf("the new host does not run on this machine: %w", err).Hint("was it made for another one?"), res.Exited
	}
	if words := strings.Fields(string(res.Stdout)); len(words) < 2 || words[0] != "mesh-host" {
		return fault.Refusedf("what is declared as the host does not say that it is one: %.80q", res.Stdout).Hint("declare a mesh-host as its source"), true
	}
	return nil, false
}

// layTrial lays the content down to be tried, and reports whether it is there and
// is what its digest says.
func (s *Service) layTrial(d *durable.Dir, sum digest.Digest) (whole bool, err error) {
	src, err := s.content.Open(sum)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer src.Close()
	p, err := d.Create(vetName, durable.Perm(0o755))
	if err != nil {
		return false, err
	}
	defer p.Abort()
	verifier := sum.Verifier()
	if _, err := io.Copy(io.MultiWriter(p, verifier), src); err != nil || !verifier.Verified() {
		return false, err
	}
	return true, p.Commit()
}
