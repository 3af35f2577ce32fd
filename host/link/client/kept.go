package client

import (
	"encoding/json"
	"slices"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// keep takes the value of this session: it is durable before the control plane hears
// that it is. One that cannot be kept is not said to be, and the next session says
// the one before.
func (s *session) keep(v link.SessionValue) {
	if !v.Valid() || slices.Contains(s.id.Sessions, v) {
		return
	}
	before := s.id.Sessions
	s.id.Sessions = append([]link.SessionValue{v}, before...)
	s.id.Sessions = s.id.Sessions[:min(len(s.id.Sessions), link.MaxKept)]
	if s.kept = s.save(); !s.kept {
		s.id.Sessions = before
		return
	}
	s.confirm()
}

// confirm says which session this is, beside the reading of the link.
func (s *session) confirm() {
	if !s.kept {
		return
	}
	v := s.id.Sessions[0]
	s.asides.Go(func() {
		body, err := json.Marshal(link.SessionRequest{Session: v})
		if err == nil {
			err = s.post(link.PathSession, body)
		}
		if err != nil && s.ctx.Err() == nil {
			// The next session says it again.
			s.client.cfg.Log.Debug("the control plane did not take the session's value", "cause", err)
		}
	})
}
