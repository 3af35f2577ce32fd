package wire

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// auditRate is how many refusals a minute are written down: anybody may be
// refused, and nobody shall fill the disk or push the log's other lines out.
const auditRate = 60

type audit struct {
	mu      sync.Mutex
	began   time.Time
	written int
	passed  int
}

// next says whether one more is written down, and how many were not since the
// last one that was.
func (a *audit) next(now time.Time) (ok bool, passed int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d := now.Sub(a.began); d < 0 || d >= time.Minute {
		a.began, a.written = now, 0
	}
	if a.written >= auditRate {
		a.passed++
		return false, 0
	}
	a.written++
	passed, a.passed = a.passed, 0
	return true, passed
}

// refused writes a refused enrolment down.
func (s *Server) refused(r *http.Request, token string, err error) {
	code := link.CodeOf(err)
	if code == "" || code == link.Busy {
		return // the state's own fault, or said by the load
	}
	now := s.now()
	ok, passed := s.audit.next(now)
	if !ok {
		return
	}
	sentence := fmt.Sprintf("an enrolment from %s is refused (%s): %s", r.RemoteAddr, code, cli.OneLine(err.Error()))
	if passed > 0 {
		sentence += fmt.Sprintf("; %s not written down", cli.Count(passed, "other was", "others were"))
	}
	const most = 400
	if len(sentence) > most {
		sentence = sentence[:most] + "…"
	}
	if len(token) > 64 {
		token = token[:64]
	}
	s.log.Warn("enrolment is refused", "from", r.RemoteAddr, "code", string(code), "token", token)
	if err := s.office.Store.Batch(func(tx *state.Tx) error {
		return tx.AddEvent(&state.Event{At: now, Kind: "enrolment.refused", Token: token, Sentence: sentence})
	}); err != nil {
		s.log.Error("cannot write the log of events", "error", err)
	}
}
