package door

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const (
	// maxQuestion bounds what a question carries: a declaration in base64, and room.
	maxQuestion = 64 << 20
	// maxAnswer bounds an answer. The largest is a host's history: a hundred
	// reports, of twenty thousand resources each.
	maxAnswer = 512 << 20
)

// decode reads a question, one and nothing after it.
func decode(r io.Reader, q any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	err := d.Decode(q)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		if err == nil {
			err = errors.New("something comes after it")
		}
	}
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return fmt.Errorf("it is larger than %d bytes", large.Limit)
	}
	return err
}

// reply writes an answer, or the fault in its place, under status 422.
func reply(w http.ResponseWriter, a any, fails error) {
	b, err := json.Marshal(a)
	if fails == nil && err != nil {
		fails = fmt.Errorf("cannot write the answer: %w", err)
	}
	status := http.StatusOK
	if fails != nil {
		status = http.StatusUnprocessableEntity
		// Three plain fields: they can be written.
		b, _ = json.Marshal(fault.Error{Kind: fault.KindOf(fails), Sentence: fails.Error(), Remedy: fault.RemedyOf(fails)})
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // who does not take it has gone
}

// read takes out of an answer what reply put in. Unlike a question it may say more
// than is known here: a newer daemon may.
func read(status string, b []byte, into any) error {
	if strings.HasPrefix(status, "200 ") {
		if err := json.Unmarshal(b, into); err != nil {
			return &Unanswered{Strange, fmt.Errorf("cannot read its answer: %w", err)}
		}
		return nil
	}
	f := new(fault.Error)
	if json.Unmarshal(b, f) != nil || f.Sentence == "" || f.Kind < fault.Failed || f.Kind > fault.Todo {
		return &Unanswered{Strange, fmt.Errorf("it answered %s", status)}
	}
	return f
}
