package client

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

func TestL09LateEndOfAnOldSessionTouchesNothing(t *testing.T) {
	p, m := newPlane(t), newMachine()
	blob := bytes.Repeat([]byte("x"), 16<<20) // more than HTTP/2 buffers
	d := digest.FromBytes(blob)
	p.set(func() { p.content[d.String()] = blob })
	client, _ := running(t, p, m)
	s := next(t, p.streams, "the link")
	m.expect(t, "up")
	old, err := client.Content(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(old, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	close(s.end)
	m.expect(t, "down")
	next(t, p.streams, "the second link")
	m.expect(t, "up")
	since := client.State()
	// What the first session left ends only now.
	if _, err := io.Copy(io.Discard, old); !errors.Is(err, ErrNoLink) {
		t.Errorf("the old download: %v", err)
	}
	old.Close()
	if now := client.State(); now != since || !now.Connected {
		t.Errorf("state %+v, was %+v", now, since)
	}
	fresh, err := client.Content(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if b, err := io.ReadAll(fresh); err != nil || !bytes.Equal(b, blob) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestContentSaysWhatIsWrong(t *testing.T) {
	p, m := newPlane(t), newMachine()
	client, _ := running(t, p, m)
	next(t, p.streams, "the link")
	m.expect(t, "up")
	d := digest.FromString("not there")
	if _, err := client.Content(t.Context(), d); err == nil || !strings.Contains(err.Error(), "no such content") || !strings.Contains(err.Error(), d.String()) {
		t.Error(err)
	}
	if _, err := client.Content(t.Context(), "sha256:../../x"); err == nil {
		t.Error("a digest that is none was asked for")
	}
	idle := New(Config{})
	if _, err := idle.Content(t.Context(), d); !errors.Is(err, ErrNoLink) {
		t.Error(err)
	}
}
