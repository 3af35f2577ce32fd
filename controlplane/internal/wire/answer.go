package wire

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// answer sends v, which begins with a link.Answer.
func (s *Server) answer(w http.ResponseWriter, status int, v any) {
	s.patience(w)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a peer that is gone reads no error either
}

func (s *Server) done(w http.ResponseWriter) {
	s.answer(w, http.StatusOK, link.Answer{ServerTime: s.now()})
}

// refuse sends what err says. One without a code is the state's fault: the
// node is told that much, and the log the rest.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	code := link.CodeOf(err)
	if code == "" {
		s.log.Error("cannot answer a node", "error", err)
		err = link.StoreUnavailable.Errorf("%s", link.StoreUnavailable.Sentence())
		code = link.StoreUnavailable
	}
	s.refuseAs(w, code.Status(), err)
}

func (s *Server) refuseAs(w http.ResponseWriter, status int, err error) {
	a := link.CodeOf(err).Answer(s.now(), err.Error())
	if r := fault.RemedyOf(err); r != "" {
		a.Remedy = r
	}
	if wait, ok := link.ParseRetry(a.Retry); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
	}
	s.answer(w, status, a)
}

// body reads the whole body, of at most most bytes, within the time.
func body(w http.ResponseWriter, r *http.Request, most int64, within time.Duration) ([]byte, error) {
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}
	_ = http.NewResponseController(w).SetReadDeadline(clock.System.Now().Add(within))
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge(most)
	case err != nil:
		return nil, link.Busy.Errorf("cannot read the request: %w", err)
	}
	return b, nil
}

// read reads one JSON value of at most most bytes.
func read(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	b, err := body(w, r, most, bodyTimeout)
	if err != nil {
		return err
	}
	return parse(b, into)
}

func tooLarge(most int64) error {
	return link.Refused.Errorf("cannot read the request: it is longer than %d bytes", most)
}

// parse reads one JSON value. Members this version does not know are a newer
// host's and are passed over.
func parse(b []byte, into any) error {
	if err := json.Unmarshal(b, into); err != nil {
		return link.Refused.Errorf("cannot read the request: %w", err)
	}
	return nil
}
