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

// A verb is one thing that can be asked for. One that is repeatable does the same
// when it is asked for twice.
type verb[Q, A any] struct {
	name       string
	repeatable bool
}

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

// Ask asks the control plane that is running. One that restarts is waited for, as
// long as the client's patience lasts, and asked again when nothing can have
// reached it or the verb may be repeated.
func (v verb[Q, A]) Ask(ctx context.Context, c *Client, q Q) (A, error) {
	b, err := json.Marshal(q)
	if err != nil {
		return *new(A), err
	}
	wait := c.patience()
	defer wait.stop()
	for {
		a, err := v.once(ctx, c, b)
		if t := new(transport); !errors.As(err, &t) || !wait.again(ctx, t.error, v.repeatable) {
			return a, err
		}
	}
}

// A transport fault is one in which the control plane said nothing; it reads as
// it is told to a person.
type transport struct {
	error
	told error
}

func (t *transport) Error() string { return t.told.Error() }
func (t *transport) Unwrap() error { return t.told }

// once asks once.
func (v verb[Q, A]) once(ctx context.Context, c *Client, b []byte) (A, error) {
	var a A
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://controller"+v.path(), bytes.NewReader(b))
	if err != nil {
		return a, err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return a, &transport{err, c.explain(err)}
	}
	defer res.Body.Close()
	err = answer(res, &a)
	return a, err
}

// answer reads what the control plane says.
func answer(res *http.Response, into any) error {
	b, err := io.ReadAll(io.LimitReader(res.Body, maxMessage))
	if err != nil {
		return &transport{err, fmt.Errorf("cannot read the control plane's answer: %w", err)}
	}
	if res.StatusCode != http.StatusOK {
		f := new(fault.Error)
		if json.Unmarshal(b, f) != nil || f.Kind == 0 {
			return errors.New("cannot understand the control plane: is it of another version?")
		}
		return f
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("cannot read the control plane's answer: %w", err)
	}
	return nil
}
