package door

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// None is the question or the answer of a verb that has none.
type None struct{}

// A Verb is one thing that can be asked for, with the types of its question and
// of its answer. Both ends use the same one, so that they cannot disagree.
type Verb[Q, A any] struct {
	Name string
	// Again: asked twice, it does the same as asked once.
	Again bool
}

func path(name string) string { return "/v1/" + name }

// Handle puts f behind the verb. Its context ends with the asker, and with what
// serves.
func (v Verb[Q, A]) Handle(m *http.ServeMux, f func(context.Context, Q) (A, error)) {
	m.HandleFunc("POST "+path(v.Name), func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if err := decode(http.MaxBytesReader(w, r.Body, maxQuestion), &q); err != nil {
			reply(w, nil, fault.Usagef("cannot read the question: %w", err))
			return
		}
		a, err := f(r.Context(), q)
		reply(w, a, err)
	})
}

// Ask asks whoever answers at c. Nobody there is waited for, as long as c's
// patience lasts, when there is somebody to wait for. Who ended while it was asked
// is asked again, if the verb allows it.
func (v Verb[Q, A]) Ask(ctx context.Context, c *Client, q Q) (a A, err error) {
	b, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	err = c.persist(ctx, c.Patience, c.Waits, v.Again, func() error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, origin+path(v.Name), bytes.NewReader(b))
		if err != nil {
			return err
		}
		a = *new(A)
		return c.once(r, &a)
	})
	return a, err
}
