package state

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// filled is the content of a state with something in it.
func filled(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path)
	update(t, s, func(tx *Tx) error {
		for i := range 100 {
			id := fmt.Sprintf("%032x", i)
			if err := errors.Join(tx.PutNode(&Node{ID: id, Name: id, Key: id}), tx.AddEvent(&Event{Sentence: strings.Repeat("x", 300)})); err != nil {
				return err
			}
		}
		return tx.PutModule(&Module{Name: "m"}, bytes.Repeat([]byte("d"), 20_000))
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestADamagedFileIsRefusedAndLeftAsItIs(t *testing.T) {
	good := filled(t)
	const page = 4096
	for name, bad := range map[string][]byte{
		"half":      good[:len(good)/2],
		"a page":    good[:page],
		"garbage":   bytes.Repeat([]byte("garbage "), 5000),
		"only meta": append(bytes.Clone(good[:2*page]), make([]byte, len(good)-2*page)...),
	} {
		path := filepath.Join(t.TempDir(), "state.db")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path)
		if err == nil {
			s.Close()
		}
		if fault.KindOf(err) != fault.Refused || !strings.Contains(fault.RemedyOf(err), "backup") {
			t.Errorf("%s: %v; %s", name, err, fault.RemedyOf(err))
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(now, bad) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// Whatever bits are flipped, the process goes on.
func TestFlippedBitsEndNothing(t *testing.T) {
	good := filled(t)
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		bad := bytes.Clone(good)
		for range 1 + r.IntN(20) {
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		}
		path := filepath.Join(t.TempDir(), "state.db")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path)
		if err != nil {
			continue
		}
		_ = s.View(func(tx *Tx) error { _, err := tx.Nodes(); return err })
		_ = s.Update(func(tx *Tx) error { return tx.AddEvent(&Event{}) })
		_ = s.Batch(func(tx *Tx) error { return tx.PutToken(&Token{ID: "t"}) })
		s.Close()
	}
}

func TestAFileThatIsCutWhileItIsOpenEndsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	if err := os.WriteFile(path, filled(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"view":   s.View(func(tx *Tx) error { _, err := tx.Nodes(); return err }),
		"update": s.Update(func(tx *Tx) error { return tx.AddEvent(&Event{}) }),
		"batch":  s.Batch(func(tx *Tx) error { return tx.AddEvent(&Event{}) }),
		"try":    s.Try(func(tx *Tx) error { return tx.AddEvent(&Event{}) }),
	} {
		if err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Close()
}

func TestAPanicIsTheErrorOfItsTransactionAlone(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			id := fmt.Sprint(i)
			err := s.Batch(func(tx *Tx) error {
				if err := tx.PutToken(&Token{ID: id}); err != nil || i%5 > 0 {
					return err
				}
				panic("page 7 is none")
			})
			if want := i%5 == 0; (err != nil) != want || want && !strings.Contains(err.Error(), "page 7 is none") {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	wg.Wait()
	_ = s.View(func(tx *Tx) error {
		ts, err := tx.Tokens()
		if len(ts) != 16 || err != nil {
			t.Errorf("%d tokens, %v", len(ts), err)
		}
		return nil
	})
}
