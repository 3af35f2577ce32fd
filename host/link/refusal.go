package link

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// The retry rules. RetryAfter makes and ParseRetry reads "after N s".
const (
	RetryNever        = "never"
	RetryAnotherToken = "with another token"
)

// A rule is what a code means to a person and to a program.
type rule struct {
	sentence, remedy, retry string
	status                  int
	kind                    fault.Kind
}

var rules = map[Code]rule{
	TokenMalformed:    {"the token cannot be read", "copy the whole line that `mesh-controller token create` printed", RetryNever, http.StatusBadRequest, fault.Refused},
	TokenUnknown:      {"the control plane does not know this token", "run `mesh-controller token create`", RetryAnotherToken, http.StatusForbidden, fault.Refused},
	TokenExpired:      {"the token has expired", "run `mesh-controller token create`", RetryAnotherToken, http.StatusForbidden, fault.Refused},
	TokenUsed:         {"the token has been used", "run `mesh-controller token create`", RetryAnotherToken, http.StatusForbidden, fault.Refused},
	TokenRevoked:      {"the token was revoked", "run `mesh-controller token create`", RetryAnotherToken, http.StatusForbidden, fault.Refused},
	ScopeMismatch:     {"the token is not for this machine", "run `mesh-controller token inspect` to see whom it is for", RetryAnotherToken, http.StatusForbidden, fault.Refused},
	BadProof:          {"the proof of the token does not fit this connection and this request", "run `mesh-host enrol` again, with the whole token", RetryNever, http.StatusForbidden, fault.Refused},
	PinMismatch:       {"whoever answers there is not the control plane of this mesh", "run `mesh-controller address list`, and make a token with the right address", RetryNever, http.StatusForbidden, fault.Refused},
	Pending:           {"a person has to admit this machine", "run `mesh-controller approve` on the control plane", "after 5 s", http.StatusAccepted, fault.Failed},
	Refused:           {"the control plane refused this machine", "run `mesh-controller events` on the control plane", RetryNever, http.StatusForbidden, fault.Refused},
	EnrolmentConflict: {"this enrolment was begun with another key", "remove the host's identity.json, then enrol again with a new token: it was copied from another machine", RetryNever, http.StatusConflict, fault.Refused},
	ProtocolTooOld:    {"this host is too old for the control plane", "run `mesh-host install` of a newer release", RetryNever, http.StatusUpgradeRequired, fault.Refused},
	ProtocolTooNew:    {"this host is too new for the control plane", "run a newer release of the control plane", RetryNever, http.StatusUpgradeRequired, fault.Refused},
	Busy:              {"the control plane has too much to do", "wait; it is tried again", "after 10 s", http.StatusTooManyRequests, fault.Failed},
	StoreUnavailable:  {"the control plane cannot write its state", "run `mesh-controller status` on the control plane", "after 30 s", http.StatusServiceUnavailable, fault.Failed},
	NodeRevoked:       {"this node was revoked; the machine keeps what it has", "enrol again with a new token, if it shall be a node", "after 60 s", http.StatusForbidden, fault.Refused},
	NodeCloned:        {"another machine is connected with this node's key", "run `mesh-host identity new` on the copy", "after 60 s", http.StatusConflict, fault.Refused},
	NodeUnknown:       {"the control plane has no record of this node", "run `mesh-controller approve` on the control plane", "after 10 s", http.StatusForbidden, fault.Refused},
}

func (c Code) rule() rule {
	if r, ok := rules[c]; ok {
		return r
	}
	// A newer control plane's.
	return rule{"the control plane refused", "", RetryNever, http.StatusForbidden, fault.Refused}
}

// Sentence says what the code means, lower case, without a full stop.
func (c Code) Sentence() string { return c.rule().sentence }

// Remedy is the one command to run next.
func (c Code) Remedy() string { return c.rule().remedy }

// Retry is "never", "after N s" or "with another token".
func (c Code) Retry() string { return c.rule().retry }

// Status is the HTTP status that goes with the code.
func (c Code) Status() int { return c.rule().status }

// Answer is what the control plane sends with this code at that time; detail
// takes the place of the sentence when it is not empty.
func (c Code) Answer(now time.Time, detail string) Answer {
	if detail == "" {
		detail = c.Sentence()
	}
	return Answer{ServerTime: now, Code: c, Retry: c.Retry(), Sentence: detail, Remedy: c.Remedy()}
}

// Errorf makes a fault that carries the code and its remedy; %w works.
func (c Code) Errorf(format string, args ...any) error {
	return c.fault(fmt.Errorf(format, args...), c.Retry(), c.Remedy())
}

func (c Code) fault(cause error, retry, remedy string) error {
	e := &coded{code: c, retry: retry, cause: cause}
	f := fault.Refusedf("%w", e)
	if c.rule().kind == fault.Failed {
		f = fault.Failedf("%w", e)
	}
	if remedy != "" {
		f = f.Hint("%s", remedy)
	}
	return f
}

type coded struct {
	code  Code
	retry string
	cause error
}

func (e *coded) Error() string { return e.cause.Error() }
func (e *coded) Unwrap() error { return e.cause }

// CodeOf returns the code err carries, or "".
func CodeOf(err error) Code {
	var e *coded
	if errors.As(err, &e) {
		return e.code
	}
	return ""
}

// RetryOf returns the retry rule err carries, or "".
func RetryOf(err error) string {
	var e *coded
	if errors.As(err, &e) {
		return e.retry
	}
	return ""
}

// AnswerError turns a refusal into a fault with the code, the sentence and the
// remedy of the answer, or those of the code where it says nothing. It returns
// nil when the answer has no code.
func AnswerError(a Answer) error {
	if a.Code == "" {
		return nil
	}
	sentence, remedy, retry := foreign(a.Sentence), foreign(a.Remedy), foreign(a.Retry)
	if sentence == "" {
		sentence = a.Code.Sentence()
	}
	if remedy == "" {
		remedy = a.Code.Remedy()
	}
	if retry == "" {
		retry = a.Code.Retry()
	}
	return a.Code.fault(fmt.Errorf("%s (%s)", sentence, foreign(string(a.Code))), retry, remedy)
}

// foreign makes text of the other end fit to be shown.
func foreign(s string) string { return cli.OneLine(clipTo(300, s)) }

// RetryAfter is the rule "after N s", in whole seconds, at least one.
func RetryAfter(d time.Duration) string {
	return fmt.Sprintf("after %d s", max(1, int64((d+time.Second-1)/time.Second)))
}

// MaxRetry is the longest wait a rule may ask for.
const MaxRetry = 10 * time.Minute

// ParseRetry returns how long to wait; ok is false when the rule is not to try
// again. A longer wait than MaxRetry counts as MaxRetry.
func ParseRetry(s string) (wait time.Duration, ok bool) {
	n, found := strings.CutPrefix(s, "after ")
	n, unit := strings.CutSuffix(n, " s")
	if !found || !unit {
		return 0, false
	}
	seconds, err := strconv.ParseUint(n, 10, 32)
	if err != nil {
		return 0, false
	}
	return min(time.Duration(seconds)*time.Second, MaxRetry), true
}
