package admission

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/name"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// The bounds of a token.
const (
	MaxTTL  = 7 * 24 * time.Hour
	maxUses = 100_000
	maxTags = 16
)

// TokenOptions is what a token may be asked to be.
type TokenOptions struct {
	TTL  time.Duration `json:"ttl"`
	Uses int           `json:"uses"`
	// Name is the node's name or a pattern for its hostname, or "".
	Name string   `json:"name,omitempty"`
	Tags []string `json:"tags,omitempty"`
	// Pending lets a person decide.
	Pending bool `json:"pending,omitempty"`
	// Rejoin names the node that the machine was and becomes again.
	Rejoin string `json:"rejoin,omitempty"`
}

func (o TokenOptions) check() error {
	switch {
	case o.TTL < time.Second || o.TTL > MaxTTL:
		return fault.Usagef("cannot make a token for %s: it may live from 1s to 168h", o.TTL)
	case o.Uses < 1 || o.Uses > maxUses:
		return fault.Usagef("cannot make a token for %s: it may have 1 to %d", cli.Count(o.Uses, "use", "uses"), maxUses)
	case o.Name != "" && !hasWildcard(o.Name) && !name.Valid(o.Name):
		return fault.Usagef("cannot bind a token to %q: a name is %s", o.Name, name.Rule)
	case strings.Trim(o.Name, patternLetters) != "":
		return fault.Usagef("cannot bind a token to %q: a pattern is a-z, 0-9, '-', '*' and '?'", o.Name)
	case o.Rejoin != "" && o.Pending:
		return fault.Usagef("cannot make a token for node %q to come back that a person decides on: `mesh-controller approve --rejoin` is the other way", o.Rejoin)
	case o.Rejoin != "" && (o.Uses != 1 || o.Name != "" || len(o.Tags) > 0):
		return fault.Usagef("cannot make a token for node %q to come back with uses, a name or tags: it is for one machine, and the node has its own", o.Rejoin)
	case len(o.Tags) > maxTags:
		return fault.Usagef("cannot make a token with %d tags: at most %d", len(o.Tags), maxTags)
	}
	return checkTags(o.Tags)
}

func checkTags(tags []string) error {
	for _, t := range tags {
		if !name.Valid(t) {
			return fault.Usagef("cannot use tag %q: a tag is %s", t, name.Rule)
		}
	}
	return nil
}

// CreateToken makes a token that names those addresses. The secret is in what
// it returns (link.Token.Text) and is kept nowhere.
func (o *Office) CreateToken(opts TokenOptions, addresses []string) (link.Token, error) {
	if err := opts.check(); err != nil {
		return link.Token{}, err
	}
	now := o.Clock.Now().UTC()
	t, err := link.NewToken(o.Authority.Mesh(), addresses, []string{o.Authority.Pin()}, now.Add(opts.TTL), opts.Name)
	if err != nil {
		return link.Token{}, err
	}
	err = o.Store.Update(func(tx *state.Tx) error {
		rejoin, err := rejoinable(tx, opts.Rejoin)
		if err != nil {
			return err
		}
		err = tx.PutToken(&state.Token{
			ID: t.ID, PublicKey: t.PublicKey(), Created: now, Expires: t.Expires,
			Uses: opts.Uses, Name: opts.Name, Tags: opts.Tags, Pending: opts.Pending, Rejoin: rejoin,
		})
		if err != nil {
			return err
		}
		return tx.AddEvent(&state.Event{At: now, Kind: "token.created", Token: t.ID,
			Sentence: fmt.Sprintf("token %q for %s is made, until %s", t.ID, cli.Count(opts.Uses, "use", "uses"), t.Expires.Format(time.RFC3339))})
	})
	if err != nil {
		return link.Token{}, err
	}
	return t, nil
}

// A TokenStatus is a token as `token list` shows it.
type TokenStatus struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	Uses    int       `json:"uses"`
	Name    string    `json:"name,omitempty"`
	Tags    []string  `json:"tags,omitempty"`
	Pending bool      `json:"pending,omitempty"`
	Rejoin  string    `json:"rejoin,omitempty"`
	Revoked time.Time `json:"revoked,omitzero"`
	// Left is how many more machines may enrol with it, were it good otherwise.
	Left int `json:"left"`
	// Code is what a new host would be told now; empty when it would be let in.
	Code    link.Code `json:"code,omitempty"`
	Holders []Holder  `json:"holders"`
}

// A Holder has a place of a token.
type Holder struct {
	Node     string          `json:"node"`
	Name     string          `json:"name,omitempty"`
	Hostname string          `json:"hostname,omitempty"`
	State    state.NodeState `json:"state"`
	// Used is false while the place is only reserved.
	Used bool `json:"used"`
}

// Tokens returns all tokens.
func (o *Office) Tokens() ([]TokenStatus, error) {
	out := []TokenStatus{}
	err := o.Store.View(func(tx *state.Tx) error {
		tokens, err := tx.Tokens()
		if err != nil {
			return err
		}
		for _, t := range tokens {
			s := TokenStatus{
				ID: t.ID, Created: t.Created, Expires: t.Expires, Uses: t.Uses, Name: t.Name, Tags: t.Tags,
				Pending: t.Pending, Rejoin: t.Rejoin, Revoked: t.Revoked, Left: t.Uses - t.Taken, Code: link.CodeOf(judge(t, o.Clock.Now())), Holders: []Holder{},
			}
			es, err := tx.EnrolmentsOf(t.ID)
			if err != nil {
				return err
			}
			for _, e := range es {
				n, err := tx.Node(e.Node)
				if err != nil {
					return err
				}
				if n == nil {
					return fmt.Errorf("internal error: enrolment %q has no node", e.ID)
				}
				s.Holders = append(s.Holders, Holder{e.Node, n.Name, e.Hostname, n.State, !e.Acked.IsZero()})
			}
			out = append(out, s)
		}
		return nil
	})
	return out, err
}

// RevokeToken lets nobody enrol with a token any more. Nodes it enrolled stay. It
// returns when it was revoked, and whether that was earlier.
func (o *Office) RevokeToken(id string) (at time.Time, already bool, err error) {
	err = o.Store.Update(func(tx *state.Tx) error {
		t, err := tx.Token(id)
		if err != nil {
			return err
		}
		if t == nil {
			return fault.Refusedf("cannot revoke token %q: there is none of that id", id).
				Hint("run `mesh-controller token list` for the ids; the id is no secret")
		}
		if at = t.Revoked; !at.IsZero() {
			already = true
			return nil
		}
		at = o.Clock.Now().UTC()
		t.Revoked = at
		if err := tx.PutToken(t); err != nil {
			return err
		}
		return tx.AddEvent(&state.Event{At: at, Kind: "token.revoked", Token: id,
			Sentence: fmt.Sprintf("token %q is revoked", id)})
	})
	return at, already, err
}

// Token returns the token a host names, before anything else of the host is
// read. An unknown one is refused.
func (o *Office) Token(id string) (t *state.Token, err error) {
	err = o.Store.View(func(tx *state.Tx) error {
		t, err = known(tx, id)
		return err
	})
	return t, err
}

func known(tx *state.Tx, id string) (*state.Token, error) {
	t, err := tx.Token(id)
	if err == nil && t == nil {
		err = link.TokenUnknown.Errorf("the control plane does not know this token")
	}
	return t, err
}

// judge says whether one more host may take a place of a token, nil if so.
func judge(t *state.Token, now time.Time) error {
	switch {
	case !t.Revoked.IsZero():
		return link.TokenRevoked.Errorf("token %q was revoked", t.ID)
	case t.Taken >= t.Uses:
		return link.TokenUsed.Errorf("token %q has been used", t.ID)
	case now.After(t.Expires):
		return link.TokenExpired.Errorf("token %q expired at %s", t.ID, t.Expires.Format(time.RFC3339))
	}
	return nil
}

// patternLetters are those of a pattern for a hostname.
const patternLetters = "abcdefghijklmnopqrstuvwxyz0123456789-*?"

func hasWildcard(pattern string) bool { return strings.ContainsAny(pattern, "*?") }

// inScope says whether a machine of that hostname may use the token.
func inScope(t *state.Token, hostname string) error {
	if t.Name == "" || !hasWildcard(t.Name) {
		return nil
	}
	if ok, err := path.Match(t.Name, name.Of(hostname)); err != nil || !ok {
		return link.ScopeMismatch.Errorf("token %q is for machines called %q, and this one is %q", t.ID, t.Name, hostname)
	}
	return nil
}
