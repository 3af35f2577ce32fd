package supervise

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/slots"
)

// sumSize is the digest that a slot begins with, and a space.
const sumSize = 65

func statePath(dir string) string { return filepath.Join(dir, StateFile) }

func saved(t *testing.T, dir string, states ...State) {
	t.Helper()
	sequence := uint64(0)
	for _, s := range states {
		s.Sequence = sequence
		if err := s.save(dir); err != nil {
			t.Fatal(err)
		}
		sequence = s.Sequence
	}
}

func TestStateIsWrittenInPlaceAndNeverGrows(t *testing.T) {
	dir := t.TempDir()
	saved(t, dir, State{Phase: Starting})
	before, err := os.Stat(statePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	s, err := ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		s.Failures++
		s.LastExit = strings.Repeat("\x00", 5000) // the longest when it is escaped
		if err := s.save(dir); err != nil {
			t.Fatal(err)
		}
		got, err := ReadState(dir)
		if err != nil || got.Failures != s.Failures || got.Sequence != s.Sequence {
			t.Fatalf("read %+v, %v; want %+v", got, err, s)
		}
	}
	after, err := os.Stat(statePath(dir))
	if err != nil || !os.SameFile(before, after) || before.Size() != after.Size() {
		t.Errorf("it was %d bytes and is %d (%v), the same file: %v", before.Size(), after.Size(), err, os.SameFile(before, after))
	}
	if b := after.Sys().(*syscall.Stat_t).Blocks; b*512 < after.Size() {
		t.Errorf("only %d blocks of 512 bytes were allocated for %d bytes", b, after.Size())
	}
}

func TestH01TornWriteLeavesTheStateBefore(t *testing.T) {
	for name, spoil := range map[string]func(slot []byte){
		"zeros":  func(b []byte) { clear(b) },
		"halved": func(b []byte) { clear(b[slots.Size/2:]) },
		"mixed":  func(b []byte) { b[100] ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			saved(t, dir, State{Phase: Starting}, State{Phase: Running}, State{Phase: Halted})
			whole, err := os.ReadFile(statePath(dir))
			if err != nil {
				t.Fatal(err)
			}
			for slot := range 2 {
				b := bytes.Clone(whole)
				spoil(b[slot*slots.Size : (slot+1)*slots.Size])
				if err := os.WriteFile(statePath(dir), b, 0o600); err != nil {
					t.Fatal(err)
				}
				// Three saves: the third is in slot 5%2.
				want := Halted
				if slot == 5%2 {
					want = Running
				}
				s, err := ReadState(dir)
				if err != nil || s.Phase != want {
					t.Errorf("without slot %d: %+v, %v; want %s", slot, s, err, want)
				}
				s.Phase = Stopped
				if err := s.save(dir); err != nil {
					t.Fatal(err)
				}
				if s, err := ReadState(dir); err != nil || s.Phase != Stopped {
					t.Errorf("written over it: %+v, %v", s, err)
				}
			}
		})
	}
}

// A shim may be years older than the host that reads what it says, or newer.
func TestStateIsReadAcrossVersions(t *testing.T) {
	const before = `{"sequence":2,"shim":{"pid":7,"start":9,"boot":"b"},"phase":"backoff","failures":0,"last_exit":"exited with 0","since":"2001-09-09T01:46:40Z","definition":"d"}`
	want := State{Sequence: 2, Shim: Proc{7, 9, "b"}, Phase: Backoff, LastExit: "exited with 0", Since: time.Unix(1e9, 0).UTC(), Definition: "d"}
	for name, content := range map[string]string{
		"of before short runs were counted": before,
		"of a newer shim":                   strings.Replace(before, `"failures":0,`, `"failures":0,"to_come":{"a":[1]},`, 1),
	} {
		slot := bytes.Repeat([]byte(" "), slots.Size)
		copy(slot[sumSize:], content+"\n")
		sum := sha256.Sum256(slot[sumSize:])
		copy(slot, hex.EncodeToString(sum[:]))
		if got, ok := slots.Decode[State](slot, 0); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, ok, want)
		}
	}
	written, err := slots.Encode(want.fit())
	if err != nil || !bytes.HasPrefix(written[sumSize:], []byte(before+"\n")) {
		t.Errorf("nothing new to say is written as %.300q, %v", written[sumSize:], err)
	}
}

func TestStateThatIsNoneIsDamaged(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadState(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	for _, content := range []string{"", "{}", "{{", strings.Repeat(" ", 2*slots.Size), strings.Repeat("x", 10*slots.Size)} {
		if err := os.WriteFile(statePath(dir), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := ReadState(dir); !errors.Is(err, ErrDamaged) {
			t.Errorf("%.10q: %+v, %v", content, s, err)
		}
		if err := Reset(dir); err != nil {
			t.Errorf("%.10q: Reset says %v", content, err)
		}
		if err := EndLeftover(dir); err != nil {
			t.Errorf("%.10q: EndLeftover says %v", content, err)
		}
	}
}

func FuzzReadSlot(f *testing.F) {
	s := State{Sequence: 2, Phase: Running, Child: &Proc{PID: 7, Start: 9, Boot: "b"}, Since: time.Unix(1e9, 0).UTC()}
	b, err := slots.Encode(s.fit())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:100])
	f.Add(bytes.Repeat([]byte("{"), slots.Size))
	f.Fuzz(func(t *testing.T, b []byte) {
		for slot := range 2 {
			got, ok := slots.Decode[State](b, slot)
			if !ok {
				continue
			}
			again, err := slots.Encode(got.fit())
			if err != nil {
				continue // larger than we write
			}
			if len(got.LastExit) > maxExit {
				continue
			}
			if back, ok := slots.Decode[State](append(make([]byte, slot*slots.Size), again...), slot); !ok || !reflect.DeepEqual(back, got) {
				t.Errorf("%+v is read again as %+v, %v", got, back, ok)
			}
		}
	})
}
