package supervise

import (
	"os"
	"path/filepath"
	"testing"
)

func TestR06OutputIsBoundedAndNeverBlocks(t *testing.T) {
	b := newBench(t, "flood", "1024")
	shim := b.up()
	b.raised("flooded")
	b.phase(Running)
	b.down(shim)
	total := int64(0)
	for _, name := range []string{OutputFile, OutputFile + ".1"} {
		fi, err := os.Stat(filepath.Join(b.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if fi.Size() > maxLog || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s has %d bytes and mode %v", name, fi.Size(), fi.Mode())
		}
		total += fi.Size()
	}
	if total < maxLog {
		t.Errorf("only %d bytes were kept, want the last %d at least", total, maxLog)
	}
}

func TestLogThatCannotBeWrittenCostsNothing(t *testing.T) {
	l := &boundedLog{path: filepath.Join(t.TempDir(), "missing", "log"), max: 10}
	if n, err := l.Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("Write gives %d, %v", n, err)
	}
}
