package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/nox-mesh/nox-mesh/host/link"
)

// maxUnowned bounds what the control plane may say that this node owned once, in
// bytes.
const maxUnowned = 64 << 20

// Leave tells the control plane that this node forgets its identity now, and what it
// could not take away. The error is ErrNoLink when no session stands.
func (c *Client) Leave(ctx context.Context, left []string) error {
	s := c.standing()
	if s == nil {
		return ErrNoLink
	}
	body, err := json.Marshal(link.LeaveRequest{Left: left})
	if err != nil {
		return err
	}
	_, err = post(ctx, s.http, s.address, link.PathLeave, nil, body, &plainAnswer{})
	return err
}

// Unowned asks what this node owned once. The error is ErrNoLink when no session
// stands.
func (c *Client) Unowned(ctx context.Context) (a link.UnownedAnswer, err error) {
	s := c.standing()
	if s == nil {
		return a, ErrNoLink
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address+link.PathUnowned, nil)
	if err != nil {
		return a, err
	}
	resp, err := s.http.RoundTrip(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if err := readAnswer(resp, &plainAnswer{}); err != nil {
			return a, err
		}
		return a, errors.New("the answer is not what was asked for")
	}
	limited := &io.LimitedReader{R: resp.Body, N: maxUnowned}
	if err := json.NewDecoder(limited).Decode(&a); err != nil {
		return a, fmt.Errorf("cannot read what this node owned: %w", err)
	}
	return a, nil
}
