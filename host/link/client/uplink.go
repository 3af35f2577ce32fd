package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// send posts the inventory and the reports that wait, at the start and at each
// notice of the outbox, until the session ends. What fails is tried again
// after a while; the stream stays.
func (s *session) send() {
	cfg := s.client.cfg
	b := backoff{min: cfg.MinBackoff, max: cfg.MaxBackoff}
	var sent []byte
	for s.ctx.Err() == nil {
		var again <-chan time.Time
		var timer *time.Timer
		if err := s.sendAll(&sent); err != nil && s.ctx.Err() == nil {
			wait := b.next()
			if asked, ok := link.ParseRetry(link.RetryOf(err)); ok {
				wait += asked
			}
			cfg.Log.Info("reports are sent later", "cause", err)
			timer = time.NewTimer(wait)
			again = timer.C
		} else {
			b.reset()
		}
		select {
		case <-s.ctx.Done():
		case <-again:
		case <-cfg.Outbox.Notify():
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// sendAll posts what is new. sent is the inventory that was posted last.
func (s *session) sendAll(sent *[]byte) error {
	cfg := s.client.cfg
	reports, err := cfg.Outbox.Pending()
	if err != nil {
		return fmt.Errorf("cannot send the reports: %w", err)
	}
	for _, r := range reports {
		body, err := json.Marshal(r)
		if err == nil {
			err = s.post(link.PathReports, body)
		}
		if err != nil && !hopeless(err) {
			return fmt.Errorf("cannot send report %s: %w", r.ID, err)
		}
		if err != nil {
			// One report nobody will ever take must not keep back the rest.
			cfg.Log.Warn("a report is dropped", "report", r.ID, "cause", err)
		}
		if err := cfg.Outbox.Sent(r.ID); err != nil {
			return fmt.Errorf("cannot forget report %s: %w", r.ID, err)
		}
	}
	// The reports do not wait for the machine's slowest fact.
	has := link.Having{Inventory: cfg.Inventory()}
	if cfg.Profile != nil {
		p := cfg.Profile()
		has.Profile = &p
	}
	inventory, err := json.Marshal(has)
	if err != nil {
		return fmt.Errorf("cannot send the inventory: %w", err)
	}
	if !bytes.Equal(inventory, *sent) {
		if err := s.post(link.PathInventory, inventory); err != nil {
			return fmt.Errorf("cannot send the inventory: %w", err)
		}
		*sent = inventory
	}
	return nil
}

// hopeless says whether the control plane refused the report itself, for good.
func hopeless(err error) bool {
	return link.CodeOf(err) == link.Refused && link.RetryOf(err) == link.RetryNever
}

func (s *session) post(path string, body []byte) error {
	_, err := post(s.ctx, s.http, s.address, path, nil, body, &plainAnswer{})
	if err != nil && s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return err
}
