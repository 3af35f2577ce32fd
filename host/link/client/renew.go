package client

import (
	"context"
	"fmt"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

const (
	// renewal is how often a certificate is asked for at most: with a clock that is
	// wrong it is always due.
	renewal = 24 * time.Hour
	// renewTime is how long the link is not read for it.
	renewTime = 10 * time.Second
)

type renewAnswer struct{ link.RenewAnswer }

func (a *renewAnswer) answer() link.Answer { return a.RenewAnswer.Answer }

// renewWhenDue asks for a new certificate at two thirds of the life of the one there
// is, and when the mesh has a new root. It needs no luck: that one is as good, and dates are for other people's tools.
func (s *session) renewWhenDue() {
	c := s.client
	now := c.cfg.Clock.Now()
	if !s.id.due(now) && s.id.underNewest() || !c.renewed.IsZero() && now.Sub(c.renewed).Abs() < renewal {
		return
	}
	c.renewed = now
	if err := s.renew(); err != nil {
		c.cfg.Log.Warn("the certificate is not renewed; the one that there is stays good", "cause", err)
	}
}

func (s *session) renew() error {
	ctx, cancel := context.WithTimeout(s.ctx, renewTime)
	defer cancel()
	var a renewAnswer
	if _, err := post(ctx, s.http, s.address, link.PathRenew, nil, []byte("{}"), &a); err != nil {
		return err
	}
	next := *s.id
	next.Certificate, next.Chain = a.Certificate, a.Chain
	if err := next.checkCertificate(); err != nil {
		return fmt.Errorf("the new certificate is of no use: %w", err)
	}
	s.id.Certificate, s.id.Chain = a.Certificate, a.Chain
	s.id.forgetRoots()
	s.save()
	return nil
}
