package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
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

// A received is a body in memory; free gives its bytes back to the budget.
type received struct {
	bytes []byte
	free  func()
}

// body reads the whole body, of at most most bytes, within the time. What was
// read counts against those who send it, not what was announced.
func (s *Server) body(w http.ResponseWriter, r *http.Request, most int64, within time.Duration, from ...payer) (received, error) {
	if r.ContentLength > most {
		return received{}, tooLarge(most)
	}
	_ = http.NewResponseController(w).SetReadDeadline(clock.System.Now().Add(within))
	m := &metered{r: http.MaxBytesReader(w, r.Body, most), budget: s.bodies, from: from}
	free := func() { s.bodies.give(m.taken, from...) }
	b, err := io.ReadAll(m)
	if err == nil {
		return received{b, free}, nil
	}
	free()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return received{}, tooLarge(most)
	case errors.Is(err, errBudget):
		return received{}, link.Busy.Errorf("cannot read the request: too much is being sent at once")
	}
	return received{}, link.Busy.Errorf("cannot read the request: %w", err)
}

var errBudget = errors.New("the budget is spent")

// metered takes from a budget what is read.
type metered struct {
	r      io.Reader
	budget *budget
	from   []payer
	taken  int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if n > 0 && !m.budget.take(int64(n), m.from...) {
		return 0, errBudget
	}
	m.taken += int64(n)
	return n, err
}

// maxObjects is how many braces a report or an inventory may open. An object of
// two bytes in the body is a hundred in memory, and those are not in the budget.
const maxObjects = 2 * declaration.MaxResources

// read reads one JSON value of at most most bytes, and calls with it. The bytes
// count until it returns.
func (s *Server) read(w http.ResponseWriter, r *http.Request, most int64, into any, from []payer, with func() error) error {
	b, err := s.body(w, r, most, bodyTimeout, from...)
	if err != nil {
		return err
	}
	defer b.free()
	if bytes.Count(b.bytes, []byte("{")) > maxObjects {
		return link.Refused.Errorf("cannot read the request: there is more in it than a node can have")
	}
	if err := parse(b.bytes, into); err != nil {
		return err
	}
	return with()
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
