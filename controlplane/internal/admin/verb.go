package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// maxMessage bounds both directions: a declaration in base64, and room.
const maxMessage = 64 << 20

// A verb is one thing that can be asked for.
type verb[Q, A any] struct{ name string }

func (v verb[Q, A]) path() string { return "/v1/" + v.name }

// handle puts f behind the verb.
func (v verb[Q, A]) handle(mux *http.ServeMux, f func(context.Context, Q) (A, error)) {
	mux.HandleFunc("POST "+v.path(), func(w http.ResponseWriter, r *http.Request) {
		var q Q
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxMessage))
		d.DisallowUnknownFields()
		if err := d.Decode(&q); err != nil {
			refuse(w, fault.Usagef("cannot read the question: %w", err))
			return
		}
		a, err := f(r.Context(), q)
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a)
	})
}

func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(fault.Error{
		Kind: fault.KindOf(err), Sentence: err.Error(), Remedy: fault.RemedyOf(err),
	})
}

// Ask asks the control plane that is running.
func (v verb[Q, A]) Ask(ctx context.Context, c *Client, q Q) (A, error) {
	var a A
	b, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://controller"+v.path(), bytes.NewReader(b))
	if err != nil {
		return a, err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return a, c.explain(err)
	}
	defer res.Body.Close()
	b, err = io.ReadAll(io.LimitReader(res.Body, maxMessage))
	if err != nil {
		return a, fmt.Errorf("cannot read the control plane's answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		f := new(fault.Error)
		if json.Unmarshal(b, f) != nil || f.Kind == 0 {
			return a, errors.New("cannot understand the control plane: is it of another version?")
		}
		return a, f
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("cannot read the control plane's answer: %w", err)
	}
	return a, nil
}
