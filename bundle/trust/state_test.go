package trust

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
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
	record := func(p *Policy, counters map[string]uint64) {
		t.Helper()
		if err := Record(path, p, counters); err != nil {
			t.Fatal(err)
		}
	}
	record(third, map[string]uint64{"a": 7})
	record(first, map[string]uint64{"a": 5, "b": 1})
	record(must[*Policy](t)(FromKeys(newKey(t).Public())), nil)
	s = must[State](t)(ReadState(path))
	if !bytes.Equal(s.Root, files[2]) || s.Counters["a"] != 7 || s.Counters["b"] != 1 {
		t.Errorf("root moved: %v, %v", !bytes.Equal(s.Root, files[2]), s.Counters)
	}
	before, _ := os.Stat(path)
	record(third, map[string]uint64{"a": 6})
	if after, _ := os.Stat(path); !os.SameFile(before, after) {
		t.Error("the same state was written again")
	}
}

func TestManyRecordAtOnceAndNothingIsLost(t *testing.T) {
	files, _ := chain(t, 2)
	first := must[*Policy](t)(FromRoot(files[0]))
	second := must[*Policy](t)(first.Advance(files))
	path := filepath.Join(t.TempDir(), "trust.json")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			p := first
			if i == 3 {
				p = second
			}
			if err := Record(path, p, map[string]uint64{fmt.Sprint(i): uint64(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := must[State](t)(ReadState(path))
	if !bytes.Equal(s.Root, files[1]) || len(s.Counters) != 20 {
		t.Errorf("%d counters, newest root kept: %v", len(s.Counters), bytes.Equal(s.Root, files[1]))
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

func TestAStateThatCouldNotBeReadIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := Record(path, nil, map[string]uint64{"a": 1}); err != nil {
		t.Fatal(err)
	}
	many := map[string]uint64{}
	for i := range 20_000 {
		many[fmt.Sprintf("%060d", i)] = 1
	}
	if err := Record(path, nil, many); fault.KindOf(err) != fault.Refused {
		t.Errorf("%v", err)
	}
	if s, err := ReadState(path); err != nil || s.Counters["a"] != 1 || len(s.Counters) != 1 {
		t.Errorf("%v, %v", s.Counters, err)
	}
}
