package state

import "strings"

// Token returns the token of that id.
func (t *Tx) Token(id string) (*Token, error) { return get[Token](t, bucketTokens, id) }

// PutToken writes a token.
func (t *Tx) PutToken(k *Token) error { return put(t, bucketTokens, k.ID, k) }

// Tokens returns all tokens, by id.
func (t *Tx) Tokens() ([]*Token, error) { return all[Token](t, bucketTokens, "") }

// Enrolment returns the enrolment of that id.
func (t *Tx) Enrolment(id string) (*Enrolment, error) {
	return get[Enrolment](t, bucketEnrolments, id)
}

// PutEnrolment writes an enrolment, and keeps the list of those that hold a place
// of its token.
func (t *Tx) PutEnrolment(e *Enrolment) error {
	old, err := t.Enrolment(e.ID)
	if err != nil {
		return err
	}
	holders := t.tx.Bucket(bucketHolders)
	if old != nil && old.Token != e.Token {
		if err := holders.Delete([]byte(old.Token + "/" + e.ID)); err != nil {
			return err
		}
	}
	place := []byte(e.Token + "/" + e.ID)
	if e.Freed {
		err = holders.Delete(place)
	} else {
		err = holders.Put(place, []byte("{}"))
	}
	if err != nil {
		return err
	}
	return put(t, bucketEnrolments, e.ID, e)
}

// EnrolmentsOf returns the enrolments that hold a place of a token.
func (t *Tx) EnrolmentsOf(token string) ([]*Enrolment, error) {
	var out []*Enrolment
	c := t.tx.Bucket(bucketHolders).Cursor()
	prefix := token + "/"
	for k, _ := c.Seek([]byte(prefix)); k != nil && strings.HasPrefix(string(k), prefix); k, _ = c.Next() {
		e, err := t.Enrolment(string(k[len(prefix):]))
		if err != nil {
			return nil, err
		}
		if e != nil {
			out = append(out, e)
		}
	}
	return out, nil
}
