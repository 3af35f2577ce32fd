package supervise

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The copy is no other name of the file, into which somebody writes.
func TestCopyOfAnExecutableIsItsOwn(t *testing.T) {
	r := newTrial(t)
	r.lay(good, 0o755)
	shim := r.up()
	r.proven(good)
	before := r.rollback()
	if err := os.WriteFile(r.program(), []byte(bad), 0o755); err != nil { // in place
		t.Fatal(err)
	}
	r.end()
	r.back(bad)
	r.holds(good)
	if after := r.rollback(); after.Good.From != before.Good.From {
		t.Errorf("it was copied again: %+v, it was %+v", after.Good, before.Good)
	}
	r.down(shim)
}

func TestExecutableThatIsWrittenWhileItRunsIsNotKept(t *testing.T) {
	r := newTrial(t)
	r.lay(good, 0o755)
	shim := r.up()
	r.ranTo("good")
	if err := os.WriteFile(r.program(), []byte(bad), 0o755); err != nil {
		t.Fatal(err)
	}
	r.await(r.dir, "word of it", func() bool { return strings.Contains(r.output(), "it was written while it was read") })
	if v := r.rollback(); v.Good != nil {
		t.Errorf("known to work: %+v", v.Good)
	}
	r.down(shim)
}

// A disk that is full: something is in the way of the copy.
func TestCopyThatCannotBeMadeCostsTheProcessNothing(t *testing.T) {
	r := newTrial(t)
	r.lay(good, 0o755)
	r.def.Healthy = 200 * time.Millisecond // it is tried again after ten of them
	way := filepath.Join(r.dir, keepTemp, "x")
	shim := r.up()
	r.phase(Running)
	if err := os.MkdirAll(way, 0o700); err != nil {
		t.Fatal(err)
	}
	const line = "cannot keep a copy of the executable, to be put back when another fails: "
	r.await(r.dir, "word of it", func() bool { return strings.Contains(r.output(), line) })
	first := r.phase(Running)
	if err := os.RemoveAll(filepath.Dir(way)); err != nil {
		t.Fatal(err)
	}
	r.proven(good)
	if now := r.phase(Running); *now.Child != *first.Child {
		t.Errorf("the process is %+v and was %+v", now.Child, first.Child)
	}
	r.down(shim)
	if n := strings.Count(r.output(), line); n != 1 {
		t.Errorf("it was said %d times:\n%s", n, r.output())
	}
}

func TestWithoutRollbackNothingIsKept(t *testing.T) {
	r := newTrial(t)
	r.lay(good, 0o755)
	shim := r.up()
	r.proven(good)
	r.down(shim)
	r.def.Rollback = false
	shim = r.up()
	r.phase(Running)
	if _, err := ReadRollback(r.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was known is there still: %v", err)
	}
	if copies, _ := filepath.Glob(filepath.Join(r.dir, goodPrefix+"*")); len(copies) > 0 {
		t.Errorf("copies are left: %q", copies)
	}
	r.down(shim)
	b, err := r.def.Bytes()
	if err != nil || bytes.Contains(b, []byte("rollback")) {
		t.Errorf("the definition says %s, %v: every process would be restarted", b, err)
	}
}

func TestAnotherProgramIsAnotherStory(t *testing.T) {
	r := newTrial(t)
	r.lay(good, 0o755)
	shim := r.up()
	r.proven(good)
	r.down(shim)
	if err := os.WriteFile(filepath.Join(r.root, "bin/next"), []byte(bad), 0o755); err != nil {
		t.Fatal(err)
	}
	r.def.Command[0] = "/bin/next"
	shim = r.up()
	r.phase(Halted)
	if v := r.rollback(); v.Good != nil || !v.Of("/bin/next") {
		t.Errorf("known is %+v", v)
	}
	if got, err := os.ReadFile(filepath.Join(r.root, "bin/next")); string(got) != bad {
		t.Errorf("it holds %q, %v", got, err)
	}
	r.down(shim)
}
