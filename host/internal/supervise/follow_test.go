package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// printed is a folder with a log, of at most max bytes each file.
func printed(t *testing.T, max int64) (dir string, log *boundedLog) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "web")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log = &boundedLog{path: filepath.Join(dir, OutputFile), max: max}
	t.Cleanup(log.close)
	return dir, log
}

func TestTheLastLinesOfBothFiles(t *testing.T) {
	// Of 20 bytes each, so that "three" begins in the older file and ends in the newest.
	dir, log := printed(t, 20)
	for _, part := range []string{"one\n", "two\n", "thr", "eee", "eeee\nf", "our\nfive\n"} {
		_, _ = log.Write([]byte(part))
	}
	if b, err := os.ReadFile(filepath.Join(dir, OutputFile+".1")); err != nil || string(b) != "one\ntwo\nthreeeeeee\nf"[:20] {
		t.Fatalf("the older file is %q, %v", b, err)
	}
	all := "one\ntwo\nthreeeeeee\nfour\nfive\n"
	for lines, want := range map[int]string{
		0: all, 1: "five\n", 2: "four\nfive\n", 3: "threeeeeee\nfour\nfive\n", 4: all[4:], 5: all, 6: all, 1000: all,
	} {
		var out bytes.Buffer
		if err := CopyOutput(t.Context(), dir, lines, false, &out); err != nil || out.String() != want {
			t.Errorf("the last %d: %q, want %q, %v", lines, out.String(), want, err)
		}
	}
	_, _ = log.Write([]byte("si")) // is no whole line yet
	var out bytes.Buffer
	if err := CopyOutput(t.Context(), dir, 2, false, &out); err != nil || out.String() != "five\nsi" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestTheLastLineOfALogWithoutAnEndOfLine(t *testing.T) {
	dir, log := printed(t, 1<<20)
	long := strings.Repeat("x", 1<<18)
	_, _ = log.Write([]byte("first\n" + long))
	var out bytes.Buffer
	if err := CopyOutput(t.Context(), dir, 1, false, &out); err != nil || out.String() != long {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

func TestNothingWasPrinted(t *testing.T) {
	dir, _ := printed(t, 20)
	var out bytes.Buffer
	if err := CopyOutput(t.Context(), dir, 10, false, &out); err != nil || out.Len() != 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// listening is a writer that a test waits at.
type listening struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func (l *listening) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.news <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

// until waits until what was written ends with this.
func (l *listening) until(t *testing.T, end string) string {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if strings.HasSuffix(text, end) {
			return text
		}
		select {
		case <-l.news:
		case <-late:
			t.Fatalf("it ends with %q, want %q", text[max(0, len(text)-100):], end)
		}
	}
}

// following follows dir; end tells it to end, and ended has why it did.
func following(t *testing.T, dir string, lines int) (out *listening, end func(), ended chan error) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	out, ended = &listening{news: make(chan struct{}, 1)}, make(chan error, 1)
	go func() { ended <- CopyOutput(ctx, dir, lines, true, out); close(ended) }()
	t.Cleanup(func() { end(); <-ended })
	return out, end, ended
}

func TestWhoFollowsMissesNothingOverTheBound(t *testing.T) {
	dir, log := printed(t, 1000)
	out, end, ended := following(t, dir, 0)
	var want strings.Builder
	for i := range 200 { // some ten files, each of which is waited for once
		line := fmt.Sprintf("line %d, and what else there is to say about the work that is done\n", i)
		want.WriteString(line)
		_, _ = log.Write([]byte(line))
		if i%10 == 9 {
			out.until(t, line)
		}
	}
	if got := out.until(t, "line 199, and what else there is to say about the work that is done\n"); got != want.String() {
		t.Errorf("%d bytes, want %d", len(got), want.Len())
	}
	end()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// A process that is not there yet, or prints nothing, is followed too; one that is
// removed has been read to its end.
func TestWhoFollowsSeesTheFirstLineAndTheLast(t *testing.T) {
	dir, log := printed(t, 1000)
	out, _, ended := following(t, dir, 10)
	_, _ = log.Write([]byte("hello\n"))
	out.until(t, "hello\n")
	_, _ = log.Write([]byte("again\n"))
	out.until(t, "hello\nagain\n")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, ErrRemoved) {
			t.Errorf("%v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it is followed though it is gone")
	}
}

func TestAProcessThatPrintedNothingYetIsFollowed(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	r := &follower{dir: dir, path: filepath.Join(dir, OutputFile), w: &out}
	for range 2 {
		if err := r.more(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(r.path, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.more(); err != nil || out.String() != "hello\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	r.file = closed(r.file, nil)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := r.more(); !errors.Is(err, ErrRemoved) {
		t.Errorf("gone: %v", err)
	}
}

func TestALogThatSomebodyEmptiesIsFollowed(t *testing.T) {
	dir, log := printed(t, 1000)
	_, _ = log.Write([]byte("before\n"))
	f, err := os.Open(log.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out bytes.Buffer
	r := &follower{dir: dir, path: log.path, file: f, w: &out}
	steps := []func() error{
		r.more, func() error { return os.Truncate(log.path, 0) }, r.more,
		func() error { _, err := log.Write([]byte("after\n")); return err }, r.more,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "before\nafter\n" {
		t.Errorf("%q", out.String())
	}
}

// Who is slower than two whole logs has what is kept of them, once.
func TestWhoFollowsTooSlowlyHasWhatIsKept(t *testing.T) {
	dir, log := printed(t, 10)
	_, _ = log.Write([]byte("1\n"))
	f, err := os.Open(log.path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := &follower{dir: dir, path: log.path, file: f, w: &out}
	for _, line := range []string{"2......\n", "3......\n", "4......\n", "5......\n"} {
		_, _ = log.Write([]byte(line))
	}
	for range 3 {
		if err := r.more(); err != nil {
			t.Fatal(err)
		}
	}
	r.file.Close()
	if out.String() != "1\n2......\n4......\n5......\n" {
		t.Errorf("%q", out.String())
	}
}
