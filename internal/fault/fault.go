// Package fault is what goes wrong, in the shape a person and a program can
// both use: a kind (which is the exit code), one sentence, and what to do next.
//
// Any error is a fault: one that says nothing of its kind is Failed. Wrapping
// with fmt.Errorf("cannot …: %w", err) keeps kind and remedy.
package fault

import (
	"errors"
	"fmt"
)

// Kind says what sort of fault it is. Its number is the exit code of every
// command of this project.
type Kind int

const (
	// Failed is a thing that was tried and did not work.
	Failed Kind = 1
	// Usage is a command that was called wrongly.
	Usage Kind = 2
	// Refused is a thing that was not tried: a signature, a rule, an admission.
	Refused Kind = 3
	// Partial is a declaration of which only a part was applied.
	Partial Kind = 4
	// Todo is the answer of a plan that found something to do.
	Todo Kind = 5
)

// Error is a fault with a kind and a remedy.
type Error struct {
	Kind     Kind   `json:"kind"`
	Sentence string `json:"sentence"`
	// Remedy is what to do next, as a half sentence ("fetch it again"), or "".
	Remedy string `json:"remedy,omitempty"`

	cause error
}

// Error returns the sentence alone; the remedy is printed once, at the end of
// the line, by internal/cli.
func (e *Error) Error() string { return e.Sentence }

// Unwrap returns the error that %w named, if any.
func (e *Error) Unwrap() error { return e.cause }

// Hint returns the fault with what to do next.
func (e *Error) Hint(format string, args ...any) *Error {
	c := *e
	c.Remedy = fmt.Sprintf(format, args...)
	return &c
}

// Refusedf makes a fault of kind Refused (exit 3). %w works as in fmt.Errorf.
func Refusedf(format string, args ...any) *Error { return newf(Refused, format, args...) }

// Usagef makes a fault of kind Usage (exit 2).
func Usagef(format string, args ...any) *Error { return newf(Usage, format, args...) }

// Failedf makes a fault of kind Failed (exit 1), for when it needs a remedy.
func Failedf(format string, args ...any) *Error { return newf(Failed, format, args...) }

// Partialf makes a fault of kind Partial (exit 4).
func Partialf(format string, args ...any) *Error { return newf(Partial, format, args...) }

// Todof makes a fault of kind Todo (exit 5).
func Todof(format string, args ...any) *Error { return newf(Todo, format, args...) }

func newf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Sentence: err.Error(), cause: errors.Unwrap(err)}
}

// KindOf returns the kind of the outermost fault in err's chain: 0 for nil,
// Failed when nothing in the chain says otherwise.
func KindOf(err error) Kind {
	if err == nil {
		return 0
	}
	var f *Error
	if errors.As(err, &f) {
		return f.Kind
	}
	return Failed
}

// RemedyOf returns the first remedy in err's chain, or "".
func RemedyOf(err error) string {
	for err != nil {
		var f *Error
		if !errors.As(err, &f) {
			return ""
		}
		if f.Remedy != "" {
			return f.Remedy
		}
		err = f.cause
	}
	return ""
}
