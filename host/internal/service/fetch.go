package service

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/link/client"
)

// maxBlob bounds one blob fetched over the link, in bytes.
const maxBlob = 8 << 30

// Ensure implements apply.Content: what is not here is fetched over the link.
func (s *Service) Ensure(ctx context.Context, d digest.Digest) error {
	if s.content.Has(d, -1) {
		return nil
	}
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l == nil {
		return fmt.Errorf("cannot get content %s: it is not in the content store: %w", d, client.ErrNoLink)
	}
	r, err := l.Content(ctx, d)
	if err != nil {
		return fmt.Errorf("cannot get content %s: %w", d, err)
	}
	defer r.Close()
	got, _, err := s.content.Add(ctx, r, maxBlob)
	if err != nil {
		return fmt.Errorf("cannot get content %s: %w", d, err)
	}
	if got != d {
		return fmt.Errorf("cannot get content %s: the control plane sent %s", d, got)
	}
	return nil
}
