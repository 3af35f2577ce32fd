package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func update(t *testing.T, s *Store, f func(*Tx) error) {
	t.Helper()
	if err := s.Update(f); err != nil {
		t.Fatal(err)
	}
}

func TestTheFileIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	open(t, path)
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
}

func TestTheSecondToOpenIsToldWhoHoldsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	open(t, path)
	_, err := Open(path)
	if err == nil || !strings.Contains(err.Error(), "holds it") {
		t.Fatalf("%v", err)
	}
	if locks, _ := os.ReadFile("/proc/locks"); !strings.Contains(string(locks), "FLOCK") {
		t.Skip("this kernel does not list locks in /proc/locks")
	}
	if want := fmt.Sprintf("process %d holds it", os.Getpid()); !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not say %q", err, want)
	}
}

func TestATransactionThatFailsLeavesNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	failed := errors.New("failed")
	for name, run := range map[string]func(func(*Tx) error) error{"update": s.Update, "batch": s.Batch} {
		err := run(func(tx *Tx) error {
			if err := tx.PutToken(&Token{ID: "t"}); err != nil {
				return err
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_ = s.View(func(tx *Tx) error {
		if k, err := tx.Token("t"); k != nil || err != nil {
			t.Errorf("%+v, %v", k, err)
		}
		return nil
	})
}

func TestANameAndAKeyBelongToOneNode(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	update(t, s, func(tx *Tx) error { return tx.PutNode(&Node{ID: "1", Name: "web", Key: "k1"}) })
	for _, n := range []*Node{{ID: "2", Name: "web", Key: "k2"}, {ID: "2", Name: "db", Key: "k1"}} {
		if err := s.Update(func(tx *Tx) error { return tx.PutNode(n) }); err == nil {
			t.Errorf("node %+v was written", n)
		}
	}
	// Two that wait have no name yet.
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutNode(&Node{ID: "3", Key: "k3"}), tx.PutNode(&Node{ID: "4", Key: "k4"}))
	})
}

func TestReportsAreBoundedAndARepeatedOneIsKeptOnce(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	add := func(id string) (isNew bool) {
		t.Helper()
		update(t, s, func(tx *Tx) (err error) {
			isNew, err = tx.AddReport("n", &Report{Report: link.Report{ID: id}})
			return err
		})
		return isNew
	}
	for i := range 30 {
		if !add(fmt.Sprint("r", i)) {
			t.Errorf("report %d is not new", i)
		}
	}
	if add("r29") {
		t.Error("a repeated report is new")
	}
	_ = s.View(func(tx *Tx) error {
		rs, err := tx.Reports("n", 100)
		if err != nil || len(rs) != 20 || rs[0].Report.ID != "r29" || rs[19].Report.ID != "r10" {
			t.Errorf("%d reports, %v", len(rs), err)
		}
		if rs, err := tx.Reports("another", 100); len(rs) != 0 || err != nil {
			t.Errorf("another node's: %v, %v", rs, err)
		}
		return nil
	})
}

func TestEventsAreBoundedAndTheNewestComeFirst(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	update(t, s, func(tx *Tx) error {
		for i := range maxEvents + 5 {
			if err := tx.AddEvent(&Event{Kind: fmt.Sprint(i + 1)}); err != nil {
				return err
			}
		}
		return nil
	})
	_ = s.View(func(tx *Tx) error {
		es, err := tx.Events(2 * maxEvents)
		if err != nil || len(es) != maxEvents || es[0].Sequence != maxEvents+5 || es[len(es)-1].Kind != "6" {
			t.Errorf("%d events, first %+v, %v", len(es), es[0], err)
		}
		return nil
	})
}

func TestAnEnrolmentIsListedUnderItsTokenOfTheMoment(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	update(t, s, func(tx *Tx) error {
		return errors.Join(
			tx.PutEnrolment(&Enrolment{ID: "e", Token: "a"}),
			tx.PutEnrolment(&Enrolment{ID: "f", Token: "aa"}),
			tx.PutEnrolment(&Enrolment{ID: "e", Token: "b"}))
	})
	_ = s.View(func(tx *Tx) error {
		for token, want := range map[string]int{"a": 0, "b": 1, "aa": 1} {
			if es, err := tx.EnrolmentsOf(token); len(es) != want || err != nil {
				t.Errorf("token %q has %d, %v, want %d", token, len(es), err, want)
			}
		}
		return nil
	})
}

func TestWhatWasWrittenIsThereAfterReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	update(t, s, func(tx *Tx) error {
		_, err := tx.AddAddress("a:1")
		return errors.Join(err, tx.PutModule(&Module{Name: "m", Version: 3}, []byte("doc")),
			tx.PutSeen(map[string]time.Time{"n": at}), tx.PutDeclaration("n", []byte("d")))
	})
	s.Close()
	s = open(t, path)
	_ = s.View(func(tx *Tx) error {
		m, err := tx.Module("m")
		if err != nil || m == nil || m.Version != 3 || string(tx.ModuleDocument("m")) != "doc" {
			t.Errorf("module %+v, %v", m, err)
		}
		if got := tx.Addresses(); len(got) != 1 || got[0] != "a:1" {
			t.Errorf("addresses %v", got)
		}
		if !tx.Seen("n").Equal(at) || !tx.Seen("other").IsZero() {
			t.Errorf("seen %v, %v", tx.Seen("n"), tx.Seen("other"))
		}
		return nil
	})
}

func TestATryLeavesNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	err := s.Try(func(tx *Tx) error {
		if err := tx.PutToken(&Token{ID: "t"}); err != nil {
			return err
		}
		if k, err := tx.Token("t"); k == nil || err != nil {
			t.Errorf("not seen within: %v, %v", k, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	if err := s.Try(func(*Tx) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	update(t, s, func(tx *Tx) error { // and the next one can write
		if k, err := tx.Token("t"); k != nil || err != nil {
			t.Errorf("it is there: %v, %v", k, err)
		}
		return nil
	})
}

func TestANodeIsBehindUntilItHasAppliedWhatIsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		n    Node
		want bool
	}{
		"nothing is wanted": {Node{State: Enrolled}, false},
		"none applied":      {Node{State: Enrolled, Wanted: Wanted{Generation: 2}}, true},
		"older":             {Node{State: Enrolled, Wanted: Wanted{Generation: 2}, Applied: Applied{Epoch: 3, Generation: 1}}, true},
		"older epoch":       {Node{State: Enrolled, Wanted: Wanted{Generation: 2}, Applied: Applied{Epoch: 2, Generation: 2}}, true},
		"that":              {Node{State: Enrolled, Wanted: Wanted{Generation: 2}, Applied: Applied{Epoch: 3, Generation: 2}}, false},
		"revoked":           {Node{State: Revoked, Wanted: Wanted{Generation: 2}}, false},
	} {
		if c.n.Behind(3) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}
