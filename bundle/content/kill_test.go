package content

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"
)

// TestAsAProcessOfItsOwn is no test but what others here run and kill.
func TestAsAProcessOfItsOwn(t *testing.T) {
	dir, do := os.Getenv("CONTENT_TEST_STORE"), os.Getenv("CONTENT_TEST_DO")
	if do == "" {
		t.Skip("run by other tests")
	}
	s := open(t, dir)
	switch do {
	case "write":
		writeBundle(t, s)
	case "collect":
		over := digest.Digest(os.Getenv("CONTENT_TEST_UNMARK"))
		if _, err := s.Collect(ctx, keeping(Kept{Unmark: []digest.Digest{over}})); err != nil {
			t.Fatal(err)
		}
	case "race":
		for i := range 20 {
			own := fmt.Sprint(os.Getenv("CONTENT_TEST_WHO"), i)
			for _, c := range []string{own, fmt.Sprint("both", i), strings.Repeat("large", 300_000)} {
				put(t, s, c)
			}
			mark(t, s, putTree(t, s, "common", "both"), "common")
			mark(t, s, putTree(t, s, own, own), own)
		}
	case "hold": // a reader that found a blob and has not marked
		w, err := s.Writer()
		if err != nil || !has(s, "found there") {
			t.Fatal(err)
		}
		fmt.Println("held")
		if _, err := io.ReadAll(os.Stdin); err != nil {
			t.Fatal(err)
		}
		putTree(t, s, "mine", "found there")
		if err := w.Mark(putTree(t, s, "mine", "found there"), "mine"); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func process(dir, do string, before ...string) *exec.Cmd {
	args := append(before, os.Args[0], "-test.run=^TestAsAProcessOfItsOwn$")
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), "CONTENT_TEST_STORE="+dir, "CONTENT_TEST_DO="+do)
	return c
}

// writeBundle writes the tree that another store holds, and marks it.
func writeBundle(t *testing.T, s *Store) {
	t.Helper()
	from := &Store{dir: os.Getenv("CONTENT_TEST_FROM")}
	marks, err := from.Marks()
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Writer()
	if err != nil {
		t.Fatal(err)
	}
	es, _ := os.ReadDir(filepath.Join(from.Dir(), blobsDir))
	for _, e := range es {
		d := digest.NewDigestFromEncoded(digest.SHA256, e.Name())
		f, err := from.Open(d)
		if err != nil {
			t.Fatal(err)
		}
		fi, _ := f.Stat()
		if err := w.Put(ctx, d, fi.Size(), f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if e.Name()[0]%2 == 0 { // several groups
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Mark(marks[0], "b"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// whole checks what must be true after a kill: each blob is what its name says,
// and what is marked is there to the last blob.
func whole(t *testing.T, dir, at string) {
	t.Helper()
	s := &Store{dir: dir}
	es, err := os.ReadDir(filepath.Join(dir, blobsDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		b, err := os.ReadFile(filepath.Join(dir, blobsDir, e.Name()))
		if err != nil || digest.FromBytes(b).Encoded() != e.Name() {
			t.Errorf("%s: blob %s holds something else (%v)", at, e.Name(), err)
		}
	}
	marks, err := s.Marks()
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	for _, m := range marks {
		mentioned(t, dir, m.Digest.Encoded(), fmt.Sprintf("%s: marked %s", at, m.Digest))
	}
}

var anyDigest = regexp.MustCompile(`"sha256:([0-9a-f]{64})"`)

// mentioned holds that a blob is there, and every blob whose digest stands anywhere
// in it if it is a JSON document, and so on.
func mentioned(t *testing.T, dir, blob, at string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, blobsDir, blob))
	if err != nil {
		t.Errorf("%s: %v", at, err)
	}
	if !bytes.HasPrefix(b, []byte("{")) {
		return
	}
	for _, m := range anyDigest.FindAllSubmatch(b, -1) {
		mentioned(t, dir, string(m[1]), at)
	}
}

// TestKillAnywhere kills a writer and a collector at each call that changes a
// directory or makes a change durable, and lets the next run go on.
func TestKillAnywhere(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil || exec.Command(strace, "-f", "-o", "/dev/null", "-e", "trace=none", "true").Run() != nil {
		t.Skip("strace is not here, or does not work")
	}
	from := open(t, t.TempDir())
	mark(t, from, putTree(t, from, "b", "one", "two", strings.Repeat("3", bufferSize+1)), "b")
	two := putTree(t, open(t, t.TempDir()), "two", "shared", "only two").Digest
	t.Setenv("CONTENT_TEST_FROM", from.Dir())
	t.Setenv("CONTENT_TEST_UNMARK", two.String())
	kills := 0
	for _, do := range []string{"write", "collect"} {
		for _, calls := range []string{"rename,renameat,renameat2", "unlink,unlinkat", "fsync"} {
			for n := 1; ; n++ {
				dir := t.TempDir()
				s := open(t, dir)
				if do == "collect" {
					mark(t, s, putTree(t, s, "one", "shared", "only one"), "one")
					mark(t, s, putTree(t, s, "two", "shared", "only two"), "two")
				}
				at := fmt.Sprintf("%s killed at %s %d", do, calls, n)
				// strace counts the calls of each thread by itself.
				c := process(dir, do, strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+calls,
					"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n))
				out, err := c.CombinedOutput()
				var exit *exec.ExitError
				killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
				if err != nil && !killed {
					t.Fatalf("%s: %v\n%s", at, err, out)
				}
				whole(t, dir, at)
				if out, err := process(dir, do).CombinedOutput(); err != nil {
					t.Fatalf("%s, and again: %v\n%s", at, err, out)
				}
				whole(t, dir, at+", and again")
				marks, _ := s.Marks()
				if want := map[string]int{"write": 6, "collect": 5}[do]; len(marks) != 1 || blobs(t, s) != want || staged(t, s) != 0 {
					t.Errorf("%s, and again: %d marks, %d blobs (want %d), %d parts", at, len(marks), blobs(t, s), want, staged(t, s))
				}
				if !killed {
					break
				}
				if kills++; n > 200 || t.Failed() {
					t.FailNow()
				}
			}
		}
	}
	if kills < 12 {
		t.Errorf("only %d kills hit", kills)
	}
}

func TestTwoProcessesWriteAtOnce(t *testing.T) {
	dir := t.TempDir()
	var running []*exec.Cmd
	var outs [2]bytes.Buffer
	for i, who := range []string{"a", "b"} {
		c := process(dir, "race")
		c.Env = append(c.Env, "CONTENT_TEST_WHO="+who)
		c.Stdout, c.Stderr = &outs[i], &outs[i]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, c)
	}
	for i, c := range running {
		if err := c.Wait(); err != nil {
			t.Errorf("%v\n%s", err, outs[i].String())
		}
	}
	whole(t, dir, "after two writers")
	s := open(t, dir)
	if marks, err := s.Marks(); err != nil || len(marks) != 41 || staged(t, s) != 0 {
		t.Errorf("%d marks, want 41, %d parts (%v)", len(marks), staged(t, s), err)
	}
}

// TestAReaderInAnotherProcessKeepsWhatItFound: it has not marked anything yet, and
// what it found there is nobody else's. When it is killed, its lease is gone.
func TestAReaderInAnotherProcessKeepsWhatItFound(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir := t.TempDir()
		s := open(t, dir)
		put(t, s, "found there")
		c := process(dir, "hold")
		in, _ := c.StdinPipe()
		out, _ := c.StdoutPipe()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
			t.Fatalf("%q %v", line, err)
		}
		if _, err := s.Collect(ctx); !errors.Is(err, ErrInUse) || !has(s, "found there") {
			t.Errorf("%v", err)
		}
		if killed {
			_ = c.Process.Kill()
		}
		in.Close()
		if err := c.Wait(); (err == nil) == killed {
			t.Fatal(err)
		}
		if _, err := s.Collect(ctx); err != nil || has(s, "found there") == killed {
			t.Errorf("killed %v: %v, still there %v", killed, err, has(s, "found there"))
		}
	}
}
