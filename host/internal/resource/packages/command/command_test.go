package command

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestP07WhatIsSaidOfAFailure(t *testing.T) {
	for name, c := range map[string]struct{ out, want string }{
		"pacman": {
			"loading packages...\nresolving dependencies...\nerror: failed to prepare transaction (could not satisfy dependencies)\n:: unable to satisfy dependency 'b' required by a\n",
			"error: failed to prepare transaction (could not satisfy dependencies) | :: unable to satisfy dependency 'b' required by a",
		},
		"apt":         {"Reading package lists...\r\nE: Unable to locate package a\n", "E: Unable to locate package a"},
		"unknown":     {"one\n\ntwo\n", "one | two"},
		"nothing":     {"\n", "it says nothing"},
		"terminals":   {"error: \x1b[31mred\x07\n", "error: [31mred"},
		"too much":    {strings.Repeat("error: x\n", 100), strings.TrimSuffix(strings.Repeat("error: x | ", 6), " | ")},
		"a long line": {"error: " + strings.Repeat("x", 1<<20), "error: " + strings.Repeat("x", 233) + "..."},
	} {
		if got := Said(c.out); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := Before("a\nb\nc\nd\nerror: it\nlater\n", "error: it"); got != "c | d | error: it" {
		t.Errorf("%q", got)
	}
}

func TestP02OneThatWasKilledIsInterrupted(t *testing.T) {
	_, err := Run(context.Background(), Line{Path: "/bin/sh", Args: []string{"-c", "echo words; kill -KILL $$"}})
	if !errors.As(err, new(Interrupted)) || !strings.Contains(err.Error(), "words") {
		t.Errorf("killed: %v", err)
	}
	_, err = Run(context.Background(), Line{Path: "/bin/sh", Args: []string{"-c", "read x || echo no answer; exit 7"}})
	if errors.As(err, new(Interrupted)) || err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("failed: %v", err)
	}
	if _, err = Run(context.Background(), Line{Path: "/nonexistent"}); err == nil {
		t.Error("what is not there was run")
	}
}
