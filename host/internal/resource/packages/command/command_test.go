package command

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/child"
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

// The host is told to end while it waits, and the program is not half done.
func TestP02OneThatIsLeftGoesOn(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(dir+"/go", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"/begun", "/ended"} {
		if err := unix.Mkfifo(dir+f, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(f string) string { // opening a fifo waits for the other side (fifo(7))
		b, err := os.ReadFile(dir + f)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan error, 1)
	go func() {
		_, err := Run(ctx, Line{Path: "/bin/sh", Args: []string{"-c", "echo x > " + dir + "/begun; read x < " + dir + "/go; echo whole > " + dir + "/ended"}})
		said <- err
	}()
	read("/begun")
	cancel()
	if err := <-said; !errors.As(err, new(Interrupted)) || err.Error() != "sh goes on without the host, which is to end" {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(dir+"/go", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	if got := read("/ended"); got != "whole\n" {
		t.Errorf("it came to %q", got)
	}
}

// It ended as the host was told to: that is no run that was left at work.
func TestP02OneThatEndedInTimeIsNotLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // select takes either
		ended := make(chan end, 1)
		ended <- end{child.Result{Exited: true}, nil}
		if e := await(ctx, ended, cancel); e.error != nil || !e.Exited {
			t.Fatalf("%+v", e)
		}
	}
}

func TestP07ADeadlineEndsIt(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, Line{Path: "/bin/sh", Args: []string{"-c", "echo words; exec sleep 1000"}})
	if !errors.As(err, new(Interrupted)) || !strings.Contains(err.Error(), "sh did not end in time, and was killed") {
		t.Errorf("%v", err)
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
