package state

import (
	"bytes"
	"time"
)

// A Grant is what one node holds at one provider.
type Grant struct {
	Node     string     `json:"node"`
	Provider string     `json:"provider"`
	State    GrantState `json:"state"`
	// Ref is what the provider calls it, or "".
	Ref string `json:"ref,omitempty"`
	// Since is when it came to be in this state.
	Since time.Time `json:"since"`
	// Error is why it could not go on from there, the last time.
	Error string `json:"error,omitempty"`
}

// GrantState is where a grant is.
type GrantState string

// The states of a grant. A record that is not there means that the provider is
// known to have nothing of the node.
//
//	granting --> granted --> revoking --> (gone)
//	    `---------------------^
const (
	Granting GrantState = "granting"
	Granted  GrantState = "granted"
	Revoking GrantState = "revoking"
)

func grantKey(provider, node string) string { return provider + "/" + node }

// Grant returns what a node holds at a provider.
func (t *Tx) Grant(provider, node string) (*Grant, error) {
	return get[Grant](t, bucketGrants, grantKey(provider, node))
}

// GrantsAt returns the grants of a provider, by node.
func (t *Tx) GrantsAt(provider string) ([]*Grant, error) {
	return all[Grant](t, bucketGrants, grantKey(provider, ""))
}

// Grants returns all of them, by provider.
func (t *Tx) Grants() ([]*Grant, error) { return all[Grant](t, bucketGrants, "") }

// GrantsOf returns what a node holds, by provider. It looks once at each provider
// there is, not at each grant.
func (t *Tx) GrantsOf(node string) ([]*Grant, error) {
	var out []*Grant
	c := t.tx.Bucket(bucketGrants).Cursor()
	for k, _ := c.First(); k != nil; {
		provider, _, _ := bytes.Cut(k, []byte("/"))
		g, err := t.Grant(string(provider), node)
		if err != nil {
			return nil, err
		}
		if g != nil {
			out = append(out, g)
		}
		k, _ = c.Seek(append(bytes.Clone(provider), '/'+1))
	}
	return out, nil
}

// PutGrant writes a grant.
func (t *Tx) PutGrant(g *Grant) error {
	return put(t, bucketGrants, grantKey(g.Provider, g.Node), g)
}

// DeleteGrant takes the record away: the provider has nothing of the node.
func (t *Tx) DeleteGrant(g *Grant) error {
	return t.tx.Bucket(bucketGrants).Delete([]byte(grantKey(g.Provider, g.Node)))
}
