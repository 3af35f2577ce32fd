package process

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
)

// writeState writes a state as a shim would have.
func writeState(t *testing.T, dir string, s supervise.State) {
	t.Helper()
	s.Sequence = 2
	content, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	file := bytes.Repeat([]byte(" "), 2*4096)
	copy(file[65:], content)
	sum := sha256.Sum256(file[65:4096])
	copy(file, hex.EncodeToString(sum[:]))
	if err := os.WriteFile(filepath.Join(dir, supervise.StateFile), file, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := supervise.ReadState(dir); err != nil || got.Shim != s.Shim {
		t.Fatalf("read %+v, %v; wrote %+v", got, err, s)
	}
}

// Whatever somebody does to the files of a process that does well.
func TestDamagedFilesAreNoReasonToRestart(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"state emptied":      func(d string) error { return os.Truncate(filepath.Join(d, supervise.StateFile), 0) },
		"state garbled":      func(d string) error { return os.WriteFile(filepath.Join(d, supervise.StateFile), []byte("{{"), 0o600) },
		"state deleted":      func(d string) error { return os.Remove(filepath.Join(d, supervise.StateFile)) },
		"definition emptied": func(d string) error { return os.Truncate(filepath.Join(d, supervise.DefinitionFile), 0) },
		"definition garbled": func(d string) error {
			return os.WriteFile(filepath.Join(d, supervise.DefinitionFile), []byte("{{"), 0o600)
		},
		"definition deleted": func(d string) error { return os.Remove(filepath.Join(d, supervise.DefinitionFile)) },
		"lock deleted":       func(d string) error { return os.Remove(filepath.Join(d, supervise.LockFile)) },
		"lock replaced": func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, supervise.LockFile)), os.WriteFile(filepath.Join(d, supervise.LockFile), nil, 0o600))
		},
	} {
		for _, guard := range []time.Duration{5 * time.Millisecond, time.Hour} {
			t.Run(name+", guard "+guard.String(), func(t *testing.T) {
				b := newBench(t, "live")
				b.kind.adjust = func(d *supervise.Definition) { d.Settle, d.Guard = 10*time.Millisecond, guard }
				b.apply()
				b.started(1)
				before := *b.state().Child
				if err := damage(b.kind.dir("web")); err != nil {
					t.Fatal(err)
				}
				st := b.check()
				if strings.HasPrefix(name, "definition") == st.Same {
					t.Errorf("Check says %+v", st)
				}
				if !st.Same {
					if st := b.apply(); !st.Same || st.Failing != "" {
						t.Errorf("after Apply Check says %+v", st)
					}
				}
				h, err := supervise.Find(before)
				if err != nil || h == nil {
					t.Fatalf("the process was ended (%v)", err)
				}
				h.Close()
				if b.starts() != 1 {
					t.Errorf("%d starts, want 1", b.starts())
				}
			})
		}
	}
}

// A disk that cannot be written: a folder is in the state's way.
func TestShimThatCannotWriteItsStateRuns(t *testing.T) {
	b := newBench(t, "live")
	define(t, b.kind, b.want)()
	state := filepath.Join(b.kind.dir("web"), supervise.StateFile)
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.kind.sup.Start(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	b.started(1)
	st := b.check()
	if !st.Same || st.Failing != "" || !strings.Contains(st.Note, "how it does cannot be read") {
		t.Errorf("Check says %+v", st)
	}
	// A pass that is short of time, and one for something else.
	hurry, cancel := context.WithCancel(t.Context())
	cancel()
	_ = b.kind.Apply(hurry, b.want, nil, st)
	if err := os.Remove(filepath.Join(b.kind.dir("web"), supervise.DefinitionFile)); err != nil {
		t.Fatal(err)
	}
	_ = b.kind.Apply(hurry, b.want, nil, st)
	if b.starts() != 1 {
		t.Errorf("%d starts, want 1", b.starts())
	}
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	if st := b.apply(); !st.Same || st.Note != "" || b.starts() != 1 {
		t.Errorf("mended: %+v after %d starts", st, b.starts())
	}
}

func TestR02FolderThatIsGoneIsMadeAgainForOneProcess(t *testing.T) {
	b := newBench(t, "live")
	b.apply()
	b.started(1)
	before := *b.state().Child
	shim, err := supervise.Shim(b.kind.dir("web"))
	if err != nil {
		t.Fatal(err)
	}
	defer shim.Close()
	if err := os.Rename(b.kind.dir("web"), b.l.Path("/aside")); err != nil {
		t.Fatal(err)
	}
	if st := b.apply(); !st.Same {
		t.Fatalf("%+v", st)
	}
	// Either the host was there in time, and it goes on, or it was ended first.
	if now := *b.state().Child; now != before {
		if h, err := supervise.Find(before); h != nil || err != nil {
			t.Errorf("there are two processes (%v)", err)
		}
		if err := shim.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestHaltedProcessIsStartedWhenAPersonAsks(t *testing.T) {
	for name, sup := range map[string]func(b *bench) Supervisor{
		"detached": func(b *bench) Supervisor { return Detached(b.l) },
		"systemd":  func(b *bench) Supervisor { return withStandIn(b.l) },
	} {
		for _, sig := range []syscall.Signal{0, syscall.SIGKILL} {
			t.Run(name+", shim gets "+sig.String(), func(t *testing.T) {
				b := newBench(t, "1")
				b.kind.sup = sup(b)
				b.apply()
				b.await(func(s supervise.State) bool { return s.Phase == supervise.Halted })
				if sig != 0 {
					signalShim(t, b.l, sig)
				}
				b.want.Restart = true
				b.apply()
				b.await(func(s supervise.State) bool { return s.Phase == supervise.Halted })
				if b.starts() != 6 {
					t.Errorf("%d starts, want 6", b.starts())
				}
			})
		}
	}
}

// Somebody used up the user's inotify instances.
func TestWithoutInotifyAChangeIsStillSeen(t *testing.T) {
	if fd := notices(filepath.Join(t.TempDir(), "missing")); fd != -1 {
		t.Fatalf("a folder that is not there is watched by %d", fd)
	}
	asked := 0
	err := follow(t.Context(), -1, func() (bool, error) { asked++; return asked == 3, nil })
	if err != nil || asked != 3 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := follow(over, -1, func() (bool, error) { return false, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}

// a shim that comes up while its process is being removed.
func TestR02RemoveIsNotOutrun(t *testing.T) {
	for range 3 {
		b := newBench(t, "live")
		b.apply()
		for range 3 {
			if err := b.kind.sup.Start(t.Context(), "web"); err != nil {
				t.Fatal(err)
			}
		}
		signalShim(t, b.l, syscall.SIGTERM)
		if _, _, err := b.kind.Remove(t.Context(), resource.Record{Key: "process:web"}); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(b.l.Processes()); err != nil || len(left) != 0 {
			t.Fatalf("left: %v, %v", left, err)
		}
	}
}
