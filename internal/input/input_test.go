package input

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// ends reads until ctx is cancelled, which happens once the reader waits.
func ends(t *testing.T, r func(context.Context) io.Reader) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	in, done := r(ctx), make(chan error, 1)
	go func() {
		_, err := io.ReadAll(in)
		done <- err
	}()
	time.AfterFunc(20*time.Millisecond, cancel)
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it waits on")
	}
}

func TestAWaitingReadEndsWithItsContext(t *testing.T) {
	t.Run("pipe", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		if _, err := w.WriteString("some"); err != nil {
			t.Fatal(err)
		}
		ends(t, func(ctx context.Context) io.Reader { return Interruptible(ctx, r) })
	})
	t.Run("FIFO without a writer", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "fifo")
		if err := unix.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
		ends(t, func(ctx context.Context) io.Reader {
			r, done, err := Open(ctx, name, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(done)
			return r
		})
	})
	t.Run("terminal", func(t *testing.T) {
		ptm, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
		if err != nil {
			t.Skip(err)
		}
		defer ptm.Close()
		ends(t, func(ctx context.Context) io.Reader { return Interruptible(ctx, ptm) })
	})
}

func TestWhatComesByAPipeIsReadWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("0123456789", 100_000)
	go func() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return
		}
		defer f.Close()
		_, _ = f.WriteString(want)
	}()
	r, done, err := Open(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if got, err := io.ReadAll(r); err != nil || string(got) != want {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestARegularFileStaysOne(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, done, err := Open(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if _, ok := r.(io.Seeker); !ok {
		t.Error("it cannot be sought in any more")
	}
	if _, _, err := Open(t.Context(), name+"x", nil); err == nil || err.Error() != "no such file or directory" {
		t.Errorf("%v", err)
	}
}

func TestStandardInputIsReadWhereThereIsOne(t *testing.T) {
	r, done, err := Open(t.Context(), "-", strings.NewReader("given"))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if b, err := io.ReadAll(r); err != nil || string(b) != "given" {
		t.Errorf("%q, %v", b, err)
	}
	if r, _, err := Open(t.Context(), "-", nil); fault.KindOf(err) != fault.Usage || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}
