package link_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

var codes = []link.Code{
	link.TokenMalformed, link.TokenUnknown, link.TokenExpired, link.TokenUsed, link.TokenRevoked,
	link.ScopeMismatch, link.BadProof, link.PinMismatch, link.Pending, link.Refused,
	link.EnrolmentConflict, link.ProtocolTooOld, link.ProtocolTooNew, link.Busy, link.StoreUnavailable,
	link.NodeRevoked, link.NodeUnknown,
}

func TestEachCodeHasSentenceCommandAndRetry(t *testing.T) {
	sentences := map[string]bool{}
	for _, c := range codes {
		sentences[c.Sentence()] = true
		if c.Sentence() == "" || c.Remedy() == "" || c.Status() < 200 {
			t.Errorf("%s: %q, %q, %d", c, c.Sentence(), c.Remedy(), c.Status())
		}
		_, wait := link.ParseRetry(c.Retry())
		if !wait && c.Retry() != link.RetryNever && c.Retry() != link.RetryAnotherToken {
			t.Errorf("%s: retry %q", c, c.Retry())
		}
	}
	if len(sentences) != len(codes) {
		t.Error("two codes say the same")
	}
}

func TestAnswerBecomesAFaultWithItsRemedy(t *testing.T) {
	if err := link.AnswerError(link.Answer{}); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	err := fmt.Errorf("cannot enrol: %w", link.AnswerError(link.TokenUsed.Answer(now, "")))
	if fault.KindOf(err) != fault.Refused || link.CodeOf(err) != link.TokenUsed ||
		!strings.Contains(err.Error(), "the token has been used") || !strings.Contains(fault.RemedyOf(err), "token create") ||
		link.RetryOf(err) != link.RetryAnotherToken {
		t.Errorf("%v; %s", err, fault.RemedyOf(err))
	}
	if err := link.AnswerError(link.Busy.Answer(now, "")); fault.KindOf(err) != fault.Failed {
		t.Error("busy is a refusal")
	}
	err = link.AnswerError(link.Answer{Code: "of_a_later_version", Sentence: "a\nb\x1b[2J" + strings.Repeat("x", 5000), Retry: "after 7 s", Remedy: "do c"})
	if s := err.Error(); strings.ContainsAny(s, "\n\x1b") || len(s) > 600 || fault.RemedyOf(err) != "do c" || link.RetryOf(err) != "after 7 s" {
		t.Errorf("%q", s)
	}
	if err := link.Refused.Errorf("cannot x: %w", io.EOF); !errors.Is(err, io.EOF) {
		t.Error("the cause is lost")
	}
}

func TestRetryIsReadInItsExactFormOnly(t *testing.T) {
	for s, want := range map[string]time.Duration{"after 5 s": 5 * time.Second, "after 0 s": 0, "after 4000000000 s": link.MaxRetry} {
		if got, ok := link.ParseRetry(s); !ok || got != want {
			t.Errorf("%q: %v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "never", "with another token", "after s", "after -1 s", "after 5", "after 5 m", "after 99999999999999999999 s"} {
		if got, ok := link.ParseRetry(s); ok {
			t.Errorf("%q: %v", s, got)
		}
	}
	if got := link.RetryAfter(1500 * time.Millisecond); got != "after 2 s" {
		t.Error(got)
	}
}
