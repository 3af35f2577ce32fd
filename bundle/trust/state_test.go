package trust

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestStateOnlyMovesForward(t *testing.T) {
	files, _ := chain(t, 3)
	path := filepath.Join(t.TempDir(), "trust.json")
	s, err := ReadState(path)
	if err != nil || len(s.Root) != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	first := must[*Policy](t)(FromRoot(files[0]))
	third := must[*Policy](t)(first.Advance(files))
	s = must[State](t)(s.MoveRoot(third)).Raise("a", 7).Raise("a", 5).Raise("b", 1)
	if err := s.Write(path); err != nil {
		t.Fatal(err)
	}
	s = must[State](t)(ReadState(path))
	if !bytes.Equal(s.Root, files[2]) || s.Counters["a"] != 7 || s.Counters["b"] != 1 {
		t.Errorf("%+v", s.Counters)
	}
	if _, err := s.MoveRoot(first); err == nil {
		t.Error("the root moved back")
	}
	loose := must[*Policy](t)(FromKeys(newKey(t).Public()))
	if again, err := s.MoveRoot(loose); err != nil || !bytes.Equal(again.Root, files[2]) {
		t.Errorf("a key file moved the root: %v", err)
	}
	before, _ := os.Stat(path)
	if err := s.Write(path); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(path); !os.SameFile(before, after) {
		t.Error("the same state was written again")
	}
}

func TestADamagedStateForgetsNothingInSilence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trust.json")
	for _, bad := range []string{"", "{", `{"root":"AAAA"}`, `{"counters":{"a":-1}}`, `{"root":"","root":""}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadState(path); fault.KindOf(err) != fault.Refused {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
